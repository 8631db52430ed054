import { closeSync, openSync, writeSync } from "node:fs";
import { errorFor } from "@tritonjs/protocol";
import {
  DEFAULT_LOG_SETTINGS,
  Log,
  type LogFormat,
  type Logger,
  type LogSubject,
  passing,
  type SubjectLogger,
} from "./log.js";

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

export interface OpenLog {
  readonly log: Log;
  close(): void;
}

/** Makes the log that the options ask for. Throws for a file that cannot be opened. */
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
    throw errorFor("INVALID_OPTION", "logFile and logger are both given: leave one of them out");
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

/** Letters of the levels in tritonserver's lines, and their names in JSON. */
const LEVELS = { error: "E", warn: "W", info: "I", debug: "V" } as const;

/**
 * Makes a logger that writes lines as tritonserver does:
 *
 * ```
 * I1121 12:00:00.000123 4711 tritonjs:0] "loading: resnet:1"
 * 2026-11-21T12:00:00Z I 4711 tritonjs:0] "loading: resnet:1"
 * ```
 *
 * The place in front of `]` has the form `<file>:<line>` of tritonserver, which parsers of its lines expect: the module
 * that writes the line, `tritonjs` unless the line names it, and 0.
 *
 * A message that begins with a line feed is a table or another text of several lines. It is written unchanged.
 *
 * The format `json` makes an object of each message. The model and the version are fields if the message is about one:
 *
 * ```
 * {"time":"2026-11-21T12:00:00.000Z","level":"info","pid":4711,"message":"loading: resnet:1","model":"resnet","version":"1"}
 * ```
 *
 * @param write gets each line with its line feed
 * @param format called for each line, because the format can change
 */
export function lineLogger(
  write: (line: string) => void,
  format: () => LogFormat,
  now: () => number = Date.now,
): SubjectLogger {
  return passing((level, message, about) => {
    const chosen = format();
    if (chosen === "json") {
      write(jsonLine(level, message, now(), about));
      return;
    }
    const text = message.startsWith("\n") ? message : JSON.stringify(message);
    const place = `${about?.module ?? "tritonjs"}:0`;
    write(`${opening(LEVELS[level], chosen, now())} ${process.pid} ${place}] ${text}\n`);
  });
}

function jsonLine(level: string, message: string, now: number, about: LogSubject = {}): string {
  const { version, ...fields } = about;
  const line = {
    time: new Date(now).toISOString(),
    level,
    pid: process.pid,
    message: message.trim(),
    ...fields,
    ...(version !== undefined && { version: String(version) }),
  };
  return `${JSON.stringify(line)}\n`;
}

function opening(level: string, format: LogFormat, now: number): string {
  const date = new Date(now);
  const day = [date.getUTCMonth() + 1, date.getUTCDate()];
  const time = [date.getUTCHours(), date.getUTCMinutes(), date.getUTCSeconds()].map(twoDigits).join(":");
  if (format === "ISO8601") {
    return `${[date.getUTCFullYear(), ...day.map(twoDigits)].join("-")}T${time}Z ${level}`;
  }
  const microseconds = Math.floor((now % 1000) * 1000);
  return `${level}${day.map(twoDigits).join("")} ${time}.${String(microseconds).padStart(6, "0")}`;
}

function twoDigits(value: number): string {
  return String(value).padStart(2, "0");
}

/**
 * The file of a log. A line that cannot be written, because the disk is full or fails, is lost, and the server continues.
 * The first such failure becomes a warning of the process. The file says how many lines are missing once it can be
 * written again.
 */
export class LogFile {
  #descriptor: number | undefined;
  #lost = 0;
  /** True while the last line in the file is incomplete. */
  #isTorn = false;

  /** @throws TritonError INVALID_ARG if the file cannot be opened */
  constructor(private readonly path: string) {
    try {
      this.#descriptor = openSync(path, "a");
    } catch (cause) {
      throw errorFor("INVALID_OPTION", `failed to open log file '${path}'`, { cause });
    }
  }

  /** Writes a line, which has its line feed. Does nothing after `close`. */
  write(line: string): void {
    if (this.#descriptor === undefined) return;
    const opening = this.#isTorn ? "\n" : "";
    const gap = this.#lost === 0 ? "" : `${this.#lost} lines of the log were lost\n`;
    try {
      this.#writeAll(Buffer.from(opening + gap + line), this.#descriptor);
      this.#lost = 0;
    } catch (error) {
      if (this.#lost++ > 0) return;
      process.emitWarning(
        `cannot write to the log file '${this.path}': ${(error as Error).message}; lines are lost until it can be written`,
        "TritonWarning",
      );
    }
  }

  close(): void {
    if (this.#descriptor !== undefined) closeSync(this.#descriptor);
    this.#descriptor = undefined;
  }

  /** A full disk may take the first part of a line. */
  #writeAll(bytes: Buffer, descriptor: number): void {
    for (let at = 0; at < bytes.byteLength; ) {
      at += writeSync(descriptor, bytes, at);
      this.#isTorn = at < bytes.byteLength;
    }
  }
}
