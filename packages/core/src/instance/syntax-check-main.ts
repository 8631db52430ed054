import { readFile } from "node:fs/promises";
import { Session } from "node:inspector";
import { SourceTextModule } from "node:vm";
import { parentPort, workerData } from "node:worker_threads";
import type { SyntaxCheck } from "./import-callable.js";

/*
 * The program of a thread that finds a syntax error in a module or in the files that it imports. It parses them and
 * runs nothing. Node does not tell the place of such an error: its stack has only the places of the module loader.
 */

/** Files that are JavaScript as they are. */
const IS_SOURCE = /^file:.*\.m?js$/;

const { module, message } = workerData as SyntaxCheck;
parentPort!.postMessage(await find(module, message));

async function find(root: string, wanted: string): Promise<string | undefined> {
  const urls = new Set([root]);
  for (const url of urls) {
    if (!IS_SOURCE.test(url)) continue;
    const source = await readFile(new URL(url), "utf8");
    try {
      const { dependencySpecifiers } = new SourceTextModule(source, { identifier: url });
      for (const specifier of dependencySpecifiers) {
        if (/^(\.{0,2}\/|file:)/.test(specifier)) urls.add(new URL(specifier, url).href);
      }
    } catch (error) {
      // A CommonJS file that the module imports is not a module, but may be correct.
      if (error instanceof SyntaxError && error.message === wanted) return `${url}:${positionOf(error)}`;
    }
  }
  return undefined;
}

/** Line and column of a syntax error, which V8 shows only to debuggers. */
function positionOf(error: SyntaxError): string {
  const session = new Session();
  session.connect();
  const held = globalThis as { syntaxError?: SyntaxError };
  held.syntaxError = error;
  let position = { lineNumber: 0, columnNumber: 0 };
  // The session calls back at once, because it is in the same thread.
  session.post("Runtime.evaluate", { expression: "syntaxError" }, (_, { result }) => {
    session.post("Runtime.getExceptionDetails", { errorObjectId: result.objectId }, (_fault, answer) => {
      position = (answer as { exceptionDetails: typeof position }).exceptionDetails;
    });
  });
  session.disconnect();
  return `${position.lineNumber + 1}:${position.columnNumber + 1}`;
}
