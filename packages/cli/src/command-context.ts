import type { BackendFactory } from "@tritonjs/core/backend";

/** The context that a command runs in. */
export interface CommandContext {
  readonly terminal: Terminal;
  readonly extensions: Extensions;
  /** Called with the exit code when a command ends. */
  finish(this: void, code: number): void;
}

/** Extensions that your own program adds to the command. */
export interface Extensions {
  /** Backends in addition to the library's, by their names in configurations. */
  readonly backends?: Readonly<Record<string, BackendFactory>>;
}

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

/** Signals that ask a process to stop, with their numbers. */
const SIGNALS = { SIGINT: 2, SIGTERM: 15 } as const;

/** The terminal of this process. */
export const processTerminal: Terminal = {
  environment: process.env,
  get columns() {
    return process.stderr.columns;
  },
  write: writerOf(process.stdout),
  writeError: writerOf(process.stderr),
  isInteractive: process.stderr.isTTY === true,
  stopRequested: (secondExitCode = 1) =>
    new Promise((resolve) => {
      let asked = false;
      for (const [name, number] of Object.entries(SIGNALS)) {
        process.on(name, () => {
          if (asked) process.exit(secondExitCode);
          asked = true;
          resolve(String(number));
        });
      }
    }),
};

/**
 * Writes to a stream of the process. Text that cannot be written is lost: neither a full disk nor a reader that is gone
 * ends a server.
 */
function writerOf(stream: NodeJS.WriteStream): (text: string) => void {
  stream.on("error", () => {});
  return (text) => {
    try {
      stream.write(text);
    } catch {
      // A file is written at once, and throws.
    }
  };
}
