import { keyList } from "../../config/schema/key-list.js";
import { type LogEntry, LogTail } from "./log-tail.js";
import type { Logger, LogSubject, SubjectLogger } from "./logger.js";
import { subjectLogger } from "./subject-logger.js";

/**
 * Format of the lines of the log: Triton's own `I0520 12:00:00.000001`, `2026-05-20T12:00:00Z I`, or an object in JSON for
 * each line.
 */
export type LogFormat = "default" | "ISO8601" | "json";

/** The formats by name. */
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
  #settings: LogSettings;
  readonly #logger: SubjectLogger;
  readonly #tail = new LogTail();
  /** Called when the settings have changed. */
  onUpdate: (() => void) | undefined;
  /** False if nobody has chosen where messages go, so that informational ones are not shown. */
  readonly hasDestination: boolean;

  constructor(logger: Logger, settings: Partial<LogSettings> = {}, hasDestination = true) {
    this.hasDestination = hasDestination;
    this.#logger = subjectLogger(logger);
    this.#settings = { ...DEFAULT_LOG_SETTINGS, ...settings };
  }

  get settings(): LogSettings {
    return this.#settings;
  }

  /** Changes the given settings and keeps the others. */
  update(changes: LogChanges): void {
    this.#settings = { ...this.#settings, ...changes };
    this.onUpdate?.();
  }

  error(message: string, about?: LogSubject): void {
    if (!this.#settings.error) return;
    this.#tail.add("error", message);
    this.#write("error", message, about);
  }

  warning(message: string, about?: LogSubject): void {
    if (!this.#settings.warning) return;
    this.#tail.add("warning", message);
    this.#write("warn", message, about);
  }

  info(message: string, about?: LogSubject): void {
    if (!this.#settings.info) return;
    this.#tail.add("info", message);
    this.#write("info", message, about);
  }

  verbose(level: number, message: string, about?: LogSubject): void {
    if (level > this.#settings.verboseLevel) return;
    this.#tail.add("verbose", message);
    this.#write("debug", message, about);
  }

  /**
   * Returns the last messages that the log has written, oldest first; at most 200.
   *
   * @param after number of the last message that the caller has seen; 0 for none
   */
  tail(after = 0): LogEntry[] {
    return this.#tail.after(after);
  }

  #write(level: keyof Logger, message: string, about: LogSubject | undefined): void {
    this.#logger[level](message, about);
  }
}
