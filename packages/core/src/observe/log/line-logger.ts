import type { LogFormat, Logger } from "./log.js";

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
 * @param write gets each line with its line feed
 * @param format called for each line, because the format can change
 */
export function lineLogger(
  write: (line: string) => void,
  format: () => LogFormat,
  now: () => number = Date.now,
): Logger {
  const at = (level: string) => (message: string) => {
    const text = message.startsWith("\n") ? message : JSON.stringify(message);
    write(`${opening(level, format(), now())} ${process.pid} tritonjs] ${text}\n`);
  };
  return { error: at("E"), warn: at("W"), info: at("I"), debug: at("V") };
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
