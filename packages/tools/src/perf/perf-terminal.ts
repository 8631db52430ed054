/** The input and output of a command. */
export interface PerfTerminal {
  write(text: string): void;
  writeError(text: string): void;
  /** Standard error is a terminal, whose line can be written over. @default false */
  readonly isInteractive?: boolean;
  /** Width of the terminal in characters. */
  readonly columns?: number | undefined;
  /**
   * Resolves when the process is asked to stop. The second request ends the process at once.
   *
   * @param secondExitCode exit code after the second request
   */
  stopRequested(secondExitCode?: number): Promise<unknown>;
}
