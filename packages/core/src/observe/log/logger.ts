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

/** What a message is about. Lines in JSON, and the loggers of pino and winston, have it as fields of their own. */
export interface LogSubject {
  readonly model?: string;
  readonly version?: string | number;
  /** Id that the client gave the request. */
  readonly request_id?: string;
  /** Ids of the requests of a batch, in lines that a model itself writes. */
  readonly request_ids?: readonly string[];
  /** Trace of the request, 32 hexadecimal digits. */
  readonly trace_id?: string;
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
