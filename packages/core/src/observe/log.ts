import { keyList } from "@tritonjs/protocol";
import { type Clock, everyMs, realClock } from "../system/clock.js";

/** Format of log lines: Triton's `I0520 12:00:00.000001`, `2026-05-20T12:00:00Z I`, or an object in JSON each. */
export type LogFormat = "default" | "ISO8601" | "json";

export const LOG_FORMATS = keyList<Record<LogFormat, true>>({ default: true, ISO8601: true, json: true });

/** Which messages the log writes. Clients can read and change the settings with the logging extension. */
export interface LogSettings {
  /** File of the log; empty if the log goes elsewhere. */
  readonly file: string;
  readonly info: boolean;
  readonly warning: boolean;
  readonly error: boolean;
  /** Verbose messages up to this level are written; 0 for none. */
  readonly verboseLevel: number;
  readonly format: LogFormat;
}

/** The settings that can change while the server runs. */
export type LogChanges = { -readonly [Key in Exclude<keyof LogSettings, "file">]?: LogSettings[Key] };

export const DEFAULT_LOG_SETTINGS: LogSettings = {
  file: "",
  info: true,
  warning: true,
  error: true,
  verboseLevel: 0,
  format: "default",
};

/**
 * The log of a server. It writes the messages that its settings allow.
 *
 * @example
 * ```ts
 * const log = new Log(console, { verboseLevel: 1 });
 * log.info("loading: resnet:1");
 * log.verbose(2, "not written");
 * ```
 */
export class Log {
  /** Shared with the logs of modules. */
  #state: LogState;
  /** Fields of each line: the module, in the log of one. */
  #fields: LogSubject | undefined;
  /** False if nobody has chosen where messages go, so that informational ones are not shown. */
  readonly hasDestination: boolean;

  constructor(logger: Logger, settings: Partial<LogSettings> = {}, hasDestination = true) {
    this.hasDestination = hasDestination;
    this.#state = {
      logger: subjectLogger(logger),
      tail: new LogTail(),
      settings: { ...DEFAULT_LOG_SETTINGS, ...settings },
      onUpdate: undefined,
    };
  }

  /**
   * This log for a module, with the same settings and destination. The name is the place of its lines, as that of a file
   * is in tritonserver: `model_lifecycle:0]`. A part of the server takes the log of its module once, where it is made.
   */
  of(module: string): Log {
    const log = new Log(this.#state.logger, {}, this.hasDestination);
    log.#state = this.#state;
    log.#fields = { module };
    return log;
  }

  get settings(): LogSettings {
    return this.#state.settings;
  }

  /** Called when the settings have changed. */
  set onUpdate(listener: (() => void) | undefined) {
    this.#state.onUpdate = listener;
  }

  /** Changes the given settings and keeps the others. */
  update(changes: LogChanges): void {
    this.#state.settings = { ...this.#state.settings, ...changes };
    this.#state.onUpdate?.();
  }

  error(message: string, about?: LogSubject): void {
    if (!this.#state.settings.error) return;
    this.#state.tail.add("error", message);
    this.#write("error", message, about);
  }

  warning(message: string, about?: LogSubject): void {
    if (!this.#state.settings.warning) return;
    this.#state.tail.add("warning", message);
    this.#write("warn", message, about);
  }

  info(message: string, about?: LogSubject): void {
    if (!this.#state.settings.info) return;
    this.#state.tail.add("info", message);
    this.#write("info", message, about);
  }

  verbose(level: number, message: string, about?: LogSubject): void {
    if (level > this.#state.settings.verboseLevel) return;
    this.#state.tail.add("verbose", message);
    this.#write("debug", message, about);
  }

  /**
   * Returns the last messages that the log has written, oldest first; at most 200.
   *
   * @param after number of the last message that the caller has seen; 0 for none
   */
  tail(after = 0): LogEntry[] {
    return this.#state.tail.after(after);
  }

  #write(level: keyof Logger, message: string, about: LogSubject | undefined): void {
    const fields =
      this.#fields === undefined || about === undefined
        ? (about ?? this.#fields)
        : { ...this.#fields, ...about };
    this.#state.logger[level](message, fields);
  }
}

interface LogState {
  readonly logger: SubjectLogger;
  readonly tail: LogTail;
  settings: LogSettings;
  onUpdate: (() => void) | undefined;
}

/**
 * Destination of messages. `console` and the loggers of pino, fastify and winston fit. Loggers of pino, fastify and
 * winston, and a `SubjectLogger`, also get the fields of a message: `model`, `version`, `request_id`, `trace_id`.
 */
export interface Logger {
  error(message: string): void;
  warn(message: string): void;
  info(message: string): void;
  debug(message: string): void;
}

/** The subject of a message. Lines in JSON, and the loggers of pino and winston, have it as fields of their own. */
export interface LogSubject {
  readonly model?: string;
  readonly version?: string | number;
  /** Id that the client gave the request. */
  readonly request_id?: string;
  /** Ids of the requests of a batch, in lines that a model itself writes. */
  readonly request_ids?: readonly string[];
  /** Trace of the request, 32 hexadecimal digits. */
  readonly trace_id?: string;
  /** Module that writes the line: the place of lines in tritonserver's format, as `<module>:0`. */
  readonly module?: string;
  /** Further fields of the line. */
  readonly [field: string]: unknown;
}

/** A logger that keeps the subjects of messages. Other loggers get the message alone, because `console` would print them. */
export interface SubjectLogger extends Logger {
  readonly takesSubjects: true;
  error(message: string, about?: LogSubject): void;
  warn(message: string, about?: LogSubject): void;
  info(message: string, about?: LogSubject): void;
  debug(message: string, about?: LogSubject): void;
}

/** Severity of a message in the log's tail. */
export type LogLevel = "error" | "warning" | "info" | "verbose";

/** A message that the log has written. */
export interface LogEntry {
  /** Counts all messages of the log from 1, so that a reader finds those that it has not seen. */
  readonly number: number;
  /** Wall time in milliseconds since 1970. */
  readonly at: number;
  readonly level: LogLevel;
  /** The message; long ones are cut to 1000 characters. */
  readonly message: string;
}

const REMEMBERED = 200;

const LONGEST_MESSAGE = 1000;

/** The last messages of a log. Its memory is bounded. */
class LogTail {
  readonly #entries: LogEntry[] = [];
  #written = 0;

  add(level: LogLevel, whole: string): void {
    const message = whole.length > LONGEST_MESSAGE ? `${whole.slice(0, LONGEST_MESSAGE - 1)}…` : whole;
    this.#entries[this.#written % REMEMBERED] = {
      number: ++this.#written,
      at: Date.now(),
      level,
      message,
    };
  }

  /** The messages after a number, oldest first; at most the last 200. */
  after(number: number): LogEntry[] {
    return this.#entries.filter((entry) => entry.number > number).sort((a, b) => a.number - b.number);
  }
}

type Level = keyof Logger;

/** A logger of pino or fastify: `info(fields, message)`. */
type FieldsFirstLogger = Record<Level, (fieldsOrMessage: object | string, message?: string) => void>;

/** A logger of winston: `info(message, fields)`. */
type FieldsLastLogger = Record<Level, (message: string, fields?: object) => void>;

/** `console` would print the fields behind the message, so only loggers of pino and winston get the subject. */
function subjectLogger(logger: Logger | SubjectLogger): SubjectLogger {
  if (takesSubjects(logger)) return logger;
  if (isPino(logger)) {
    const pino = logger as object as FieldsFirstLogger;
    return passing((level, message, about) =>
      about === undefined ? pino[level](message) : pino[level](about, message),
    );
  }
  if (isWinston(logger)) {
    const winston = logger as object as FieldsLastLogger;
    return passing((level, message, about) =>
      about === undefined ? winston[level](message) : winston[level](message, about),
    );
  }
  return passing((level, message) => logger[level](message));
}

export function passing(write: (level: Level, message: string, about?: LogSubject) => void): SubjectLogger {
  const at = (level: Level) => (message: string, about?: LogSubject) => write(level, message, about);
  return {
    takesSubjects: true,
    error: at("error"),
    warn: at("warn"),
    info: at("info"),
    debug: at("debug"),
  };
}

function takesSubjects(logger: Logger | SubjectLogger): logger is SubjectLogger {
  return "takesSubjects" in logger && logger.takesSubjects === true;
}

function isPino(logger: Logger): boolean {
  return "bindings" in logger && typeof logger.bindings === "function";
}

function isWinston(logger: Logger): boolean {
  return "transports" in logger && "configure" in logger && typeof logger.configure === "function";
}

const MOST_IDS = 16;

interface RunningBatch {
  readonly requests: readonly {
    readonly id: string;
    /** False for a request that only fills a place. */
    readonly ready: boolean;
    readonly traceparent?: string | undefined;
  }[];
  /** True while the request at `index` is unanswered. */
  isOpen(index: number): boolean;
}

/**
 * Fields of a line that a model itself writes. While it works on one request, these are the fields of this request. While
 * it works on several, `request_ids` lists their ids, at most 16, because the line does not tell which one it means.
 */
export function runningFields(
  batches: Iterable<RunningBatch>,
): Pick<LogSubject, "request_id" | "trace_id" | "request_ids"> {
  const open = [...batches].flatMap((batch) =>
    batch.requests.filter(({ ready }, index) => ready && batch.isOpen(index)),
  );
  if (open.length === 1) {
    const { id, traceparent } = open[0]!;
    return requestFields(id, { traceId: traceparent?.split("-")[1] });
  }
  const ids = open.map(({ id }) => id).filter((id) => id !== "");
  return ids.length === 0 ? {} : { request_ids: ids.slice(0, MOST_IDS) };
}

/** Fields of lines about one request. A request without an id or a trace has no such field. */
export function requestFields(
  id: string,
  trace: { readonly traceId: string | undefined } | undefined,
): Pick<LogSubject, "request_id" | "trace_id"> {
  const traceId = trace?.traceId;
  return {
    ...(id !== "" && { request_id: id }),
    ...(traceId !== undefined && { trace_id: traceId }),
  };
}

const WARN_EVERY_MS = 60_000;

/** Logs errors of a listening server, at most once a minute. Without a listener, such an error ends the process. */
export function acceptFaults(log: Log, name: string, clock: Clock = realClock): (error: Error) => void {
  const mayWarn = everyMs(clock, WARN_EVERY_MS);
  return ({ message }) => {
    if (mayWarn()) log.warning(`${name} cannot accept connections: ${message}`);
  };
}
