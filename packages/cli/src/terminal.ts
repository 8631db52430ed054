/** The input and output of a command. */
export interface Terminal {
  readonly environment: NodeJS.ProcessEnv;
  /** Width in characters, if the output is a terminal. */
  readonly columns?: number | undefined;
  write(text: string): void;
  writeError(text: string): void;
  /** Errors go to a terminal, whose line can be written over. @default false */
  readonly isInteractive?: boolean;
  /**
   * Resolves when the process is asked to stop, with the number of the signal. The second request ends the process at
   * once.
   *
   * @param secondExitCode exit code after the second request; 1 unless given
   */
  stopRequested(secondExitCode?: number): Promise<string>;
}
