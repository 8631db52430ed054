import type { LogFormat } from "./log.js";
import type { LogSubject, SubjectLogger } from "./logger.js";

/** Letters of the levels in tritonserver's lines, and their names in JSON. */
const LEVELS = { error: "E", warn: "W", info: "I", debug: "V" } as const;

/**
 * Makes a logger that writes lines as tritonserver does:
 *
 * ```
 * I1121 12:00:00.000123 4711 tritonjs] "loading: resnet:1"
 * 2026-11-21T12:00:00Z I 4711 tritonjs] "loading: resnet:1"
 * ```
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
  const at = (level: keyof typeof LEVELS) => (message: string, about?: LogSubject) => {
    const chosen = format();
    if (chosen === "json") {
      write(jsonLine(level, message, now(), about));
      return;
    }
    const text = message.startsWith("\n") ? message : JSON.stringify(message);
    write(`${opening(LEVELS[level], chosen, now())} ${process.pid} tritonjs] ${text}\n`);
  };
  return {
    takesSubjects: true,
    error: at("error"),
    warn: at("warn"),
    info: at("info"),
    debug: at("debug"),
  };
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
