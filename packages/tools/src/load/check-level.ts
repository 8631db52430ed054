import { invalidOption } from "../data/invalid-option.js";
import type { LoadLevel } from "./load-level.js";

/** @throws TritonError INVALID_ARG for a level that cannot be sent. */
export function checkLevel(level: LoadLevel): void {
  switch (level.mode) {
    case "concurrency":
      count("concurrency", level.value);
      break;
    case "request_rate":
      positive("request rate", level.value);
      break;
    case "request_intervals":
      if (level.gapsMicroseconds.length === 0)
        throw invalidOption("request intervals: expected at least one gap, got none");
      for (const gap of level.gapsMicroseconds) atLeastZero("request interval", gap);
      if (level.gapsMicroseconds.every((gap) => gap === 0))
        throw invalidOption("request intervals: expected a gap above 0, got only zeros");
      break;
    case "fixed_schedule":
      if (level.timestampsMs.length === 0)
        throw invalidOption("fixed schedule: expected at least one time, got none");
      level.timestampsMs.forEach((time, i) => {
        atLeastZero("time of the fixed schedule", time);
        if (i > 0 && time < level.timestampsMs[i - 1]!)
          throw invalidOption(
            `fixed schedule: expected rising times, got ${time} after ${level.timestampsMs[i - 1]}`,
          );
      });
      break;
    case "concurrency_ramp":
      atLeastZero("concurrency at the start of the ramp", level.from);
      count("concurrency at the end of the ramp", level.to);
      atLeastZero("duration of the ramp", level.durationMs);
      break;
    case "request_rate_ramp":
      atLeastZero("request rate at the start of the ramp", level.from);
      positive("request rate at the end of the ramp", level.to);
      atLeastZero("duration of the ramp", level.durationMs);
      break;
    case "periodic_concurrency":
      count("periodic concurrency at the start", level.start);
      count("periodic concurrency at the end", level.end);
      count("step of the periodic concurrency", level.step);
      count("responses of a request period", level.responses);
      break;
    case "session_concurrency":
      count("session concurrency", level.value);
      if (level.sessions.length < level.value)
        throw invalidOption(
          `session concurrency: expected data with at least ${level.value} sessions, got ${level.sessions.length}`,
        );
      break;
  }
}

function count(what: string, value: number): void {
  if (!Number.isSafeInteger(value) || value < 1)
    throw invalidOption(`${what}: expected a whole number of at least 1, got ${value}`);
}

function positive(what: string, value: number): void {
  if (!(Number.isFinite(value) && value > 0))
    throw invalidOption(`${what}: expected a number above 0, got ${value}`);
}

function atLeastZero(what: string, value: number): void {
  if (!(Number.isFinite(value) && value >= 0))
    throw invalidOption(`${what}: expected a number of at least 0, got ${value}`);
}
