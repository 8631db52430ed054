import { Console } from "node:console";
import { Writable } from "node:stream";
import { format } from "node:util";
import type { LogLine } from "../module/model-logger.js";

/**
 * Writes the output of `console` in this worker to the server's log. The worker must run the module of one model only.
 * Direct output to `process.stdout` is not redirected.
 */
export function logConsole(modelName: string, write: (line: LogLine) => void): void {
  const log = (level: LogLine["level"], text: string) =>
    write({ level, message: `model '${modelName}': ${text.replace(/\n$/, "")}` });
  const linesOf = (level: LogLine["level"]) =>
    new Writable({
      decodeStrings: false,
      write(text, _encoding, done) {
        log(level, String(text));
        done();
      },
    });
  const logged = new Console({ stdout: linesOf("info"), stderr: linesOf("error"), colorMode: false });
  logged.warn = (...values) => log("warning", format(...values));
  logged.debug = (...values) => log("verbose", format(...values));
  Object.assign(console, logged);
}
