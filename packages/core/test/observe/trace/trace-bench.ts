import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import { Log } from "../../../src/observe/log.js";
import type { TraceOptions } from "../../../src/observe/trace-settings.js";
import { Tracing } from "../../../src/observe/tracing.js";
import { VirtualClock } from "../../../src/system/clock.js";

/** Entry of a trace file. */
export interface Entry {
  readonly id: number;
  readonly [name: string]: unknown;
}

/** Records traces into a temporary folder of the test. */
export function traceBench(options: TraceOptions = {}) {
  const folder = mkdtempSync(join(tmpdir(), "tritonjs-trace-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const messages: string[] = [];
  const push = (message: string) => messages.push(message);
  const log = new Log({ error: push, warn: push, info: push, debug: push });
  const clock = new VirtualClock();
  const given = { level: "TIMESTAMPS", rate: 1, file: join(folder, "trace.json"), ...options } as const;
  const tracing = new Tracing(given, clock, log);
  const read = (name = "trace.json"): Entry[] => JSON.parse(readFileSync(join(folder, name), "utf8"));
  /** Runs one request through the traces; false when it is not traced. */
  const run = (modelName = "m"): boolean => {
    const trace = tracing.sample(modelName);
    trace?.begin(modelName, 1, { id: "", inputs: new Map() }, clock.now());
    trace?.end(clock.now());
    trace?.release();
    return trace !== undefined;
  };
  return { folder, messages, clock, tracing, read, run, files: () => readdirSync(folder).sort() };
}

/** Number of requests that the entries describe. */
export function requestsIn(entries: readonly Entry[]): number {
  return new Set(entries.map(({ id }) => id)).size;
}
