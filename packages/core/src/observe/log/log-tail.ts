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
export class LogTail {
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
