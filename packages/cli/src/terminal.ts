/** The input and output of a command. */
export interface Terminal {
  readonly environment: NodeJS.ProcessEnv;
  write(text: string): void;
  writeError(text: string): void;
  /** Resolves when the process is asked to stop, with the number of the signal. */
  stopRequested(): Promise<string>;
}
