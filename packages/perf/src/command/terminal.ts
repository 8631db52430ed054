import type { ToolTerminal } from "./tool-command.js";

/** The input and output of a command, with the environment of its process. */
export interface Terminal extends ToolTerminal {
  readonly environment: NodeJS.ProcessEnv;
  /**
   * Resolves when the process is asked to stop, with the number of the signal. The second request ends the process at
   * once.
   *
   * @param secondExitCode exit code after the second request; 1 unless given
   */
  stopRequested(secondExitCode?: number): Promise<string>;
}

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
