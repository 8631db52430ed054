/** What writes messages down: `console`, pino's and fastify's loggers fit. */
export interface Logger {
  error(message: string): void;
  warn(message: string): void;
  info(message: string): void;
  debug(message: string): void;
}

/** How lines of the log look: Triton's own `I0520 12:00:00.000001`, or `2026-05-20T12:00:00Z I`. */
export type LogFormat = "default" | "ISO8601";

/** What the log lets through; clients can read and change it with the logging extension. */
export interface LogSettings {
  /** Where the log goes, when that is a file; otherwise empty. */
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
 * The log of a server: lets through what its settings say.
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
  readonly #logger: Logger;

  constructor(logger: Logger, settings: Partial<LogSettings> = {}) {
    this.#logger = logger;
    this.#settings = { ...DEFAULT_LOG_SETTINGS, ...settings };
  }

  get settings(): LogSettings {
    return this.#settings;
  }

  /** Changes the given settings and leaves the others. */
  update(changes: LogChanges): void {
    this.#settings = { ...this.#settings, ...changes };
  }

  error(message: string): void {
    if (this.#settings.error) this.#logger.error(message);
  }

  warning(message: string): void {
    if (this.#settings.warning) this.#logger.warn(message);
  }

  info(message: string): void {
    if (this.#settings.info) this.#logger.info(message);
  }

  verbose(level: number, message: string): void {
    if (level <= this.#settings.verboseLevel) this.#logger.debug(message);
  }
}
