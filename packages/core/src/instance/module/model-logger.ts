import type { Log } from "../../observe/log/log.js";
import type { LogSubject } from "../../observe/log/logger.js";
import type { JsModelLogger } from "./js-model.js";

/** A line for the server's log. */
export interface LogLine {
  readonly level: "error" | "warning" | "info" | "verbose";
  readonly message: string;
  /** Level of a verbose line. */
  readonly verboseLevel?: number | undefined;
}

/** Creates a model's logger; `write` receives its lines. */
export function modelLogger(write: (line: LogLine) => void): JsModelLogger {
  const at = (level: LogLine["level"]) => (message: string) => write({ level, message: String(message) });
  return {
    error: at("error"),
    warning: at("warning"),
    info: at("info"),
    verbose: (message, verboseLevel = 1) =>
      write({ level: "verbose", message: String(message), verboseLevel: Number(verboseLevel) }),
  };
}

/** Writes a line of a model to the log. */
export function writeLine(log: Log, { level, message, verboseLevel = 1 }: LogLine, about: LogSubject): void {
  if (level === "verbose") log.verbose(verboseLevel, message, about);
  else log[level](message, about);
}
