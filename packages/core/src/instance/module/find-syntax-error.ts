import { Worker } from "node:worker_threads";

/** Data of the thread that finds a syntax error. */
export interface SyntaxCheck {
  /** URL of the module that cannot be imported. */
  readonly module: string;
  /** Message of the syntax error. */
  readonly message: string;
}

/**
 * Finds a syntax error in a module, or in the files that it imports by a path. It parses them and runs nothing.
 *
 * @returns the place as `file:line:column`; undefined if it is in another kind of file
 */
export function findSyntaxError(check: SyntaxCheck): Promise<string | undefined> {
  return new Promise((resolve) => {
    const worker = new Worker(new URL("./syntax-check-main.js", import.meta.url), {
      workerData: check,
      execArgv: ["--experimental-vm-modules", "--no-warnings"],
    });
    worker.once("message", resolve);
    worker.once("error", () => resolve(undefined));
    worker.once("exit", () => resolve(undefined));
  });
}
