import { TritonError } from "@tritonjs/protocol";
import { lineLogger } from "./line-logger.js";
import { DEFAULT_LOG_SETTINGS, Log, type LogFormat } from "./log.js";
import { LogFile } from "./log-file.js";
import type { Logger } from "./logger.js";

/** Options of the log, named after those of PyTriton's `TritonConfig`. */
export interface LogOptions {
  /**
   * Receives the messages: `console`, a pino or fastify logger, or a custom one.
   * @default warnings and errors become warnings of the process; other messages are dropped
   */
  readonly logger?: Logger;
  /** File for the log, in Triton's line format. Replaces the logger. */
  readonly logFile?: string;
  /** Whether informational messages are written. @default true */
  readonly logInfo?: boolean;
  /** Whether warnings are written. @default true */
  readonly logWarning?: boolean;
  /** Whether errors are written. @default true */
  readonly logError?: boolean;
  /** Verbose messages up to this level are written. @default 0 */
  readonly logVerbose?: number;
  /** Format of the lines in `logFile`; `json` writes an object for each line. @default "default" */
  readonly logFormat?: LogFormat;
}

/** A log, and a function that closes its file. */
export interface OpenLog {
  readonly log: Log;
  close(): void;
}

/**
 * Makes the log that the options ask for.
 *
 * @throws TritonError INVALID_ARG for a file that cannot be opened, or for a logger together with a file.
 */
export function createLog(options: LogOptions): OpenLog {
  const settings = {
    file: options.logFile ?? "",
    info: options.logInfo ?? DEFAULT_LOG_SETTINGS.info,
    warning: options.logWarning ?? DEFAULT_LOG_SETTINGS.warning,
    error: options.logError ?? DEFAULT_LOG_SETTINGS.error,
    verboseLevel: options.logVerbose ?? DEFAULT_LOG_SETTINGS.verboseLevel,
    format: options.logFormat ?? DEFAULT_LOG_SETTINGS.format,
  };
  if (settings.file === "") {
    const { logger } = options;
    return { log: new Log(logger ?? processWarnings, settings, logger !== undefined), close: () => {} };
  }
  if (options.logger !== undefined) {
    throw new TritonError("INVALID_ARG", "logFile and logger are both given: leave one of them out", {
      reason: "INVALID_OPTION",
    });
  }
  const file = new LogFile(settings.file);
  const log: Log = new Log(
    lineLogger(
      (line) => file.write(line),
      () => log.settings.format,
    ),
    settings,
  );
  return { log, close: () => file.close() };
}

const processWarnings: Logger = {
  error: (message) => process.emitWarning(message, "TritonError"),
  warn: (message) => process.emitWarning(message, "TritonWarning"),
  info: () => {},
  debug: () => {},
};
