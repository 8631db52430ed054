import type { Terminal } from "./terminal.js";

/** Signals that ask a process to stop, with their numbers. */
const SIGNALS = { SIGINT: 2, SIGTERM: 15 } as const;

/** The terminal of this process. */
export const processTerminal: Terminal = {
  environment: process.env,
  get columns() {
    return process.stderr.columns;
  },
  write: (text) => void process.stdout.write(text),
  writeError: (text) => void process.stderr.write(text),
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
