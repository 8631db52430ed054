import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import {
  type ChromeEvent,
  chromeTrace,
  inspectTrace,
  summarizeTrace,
} from "../../src/trace/inspect-trace.js";
import { readTrace } from "../../src/trace/read-trace.js";
import { record } from "../replay/support/record.js";

const COUNT = 300;
let file: string;
const folder = mkdtempSync(join(tmpdir(), "tritonjs-inspected-trace-"));
afterAll(() => rmSync(folder, { recursive: true }));

beforeAll(async () => {
  file = await record({
    maxBatchSize: 4,
    batcher: { maxQueueDelayMicroseconds: 2000 },
    instances: 2,
    perMs: 0.5,
    count: COUNT,
  });
});

/** A trace of three requests: two in one batch that came over HTTP, and one that the cache answered. */
function written(): string {
  const stamps = (id: number, times: Record<string, number>) =>
    Object.entries(times).map(([name, ms]) => ({ id, timestamps: [{ name, ns: ms * 1e6 }] }));
  const computed = { COMPUTE_START: 14, COMPUTE_INPUT_END: 15, COMPUTE_OUTPUT_START: 18, COMPUTE_END: 20 };
  const batch = { size: 3, requests: 2, cut: "DELAY", instance: "m_0" };
  const entries = [
    { id: 1, model_name: "m", model_version: 1, request_id: "first" },
    ...stamps(1, { HTTP_RECV_START: 8, HTTP_RECV_END: 9, QUEUE_START: 10, ...computed, REQUEST_END: 21 }),
    ...stamps(1, { HTTP_SEND_START: 22, HTTP_SEND_END: 23 }),
    { id: 1, batch },
    { id: 2, model_name: "m", model_version: 1, parent_id: 1 },
    ...stamps(2, { QUEUE_START: 12, ...computed, REQUEST_END: 22 }),
    { id: 2, batch },
    { id: 3, model_name: "m", model_version: 1, request_id: "evil\u001b[31m\n" },
    ...stamps(3, { QUEUE_START: 30, REQUEST_END: 30.5 }),
  ];
  const path = join(folder, "trace.json");
  writeFileSync(path, JSON.stringify(entries));
  return path;
}

async function run(...args: string[]): Promise<{ code: number; out: string; err: string }> {
  const texts = { out: "", err: "" };
  const write = (key: keyof typeof texts) => (text: string) => {
    texts[key] += text;
  };
  const code = await inspectTrace(args, { write: write("out"), writeError: write("err") });
  return { code, ...texts };
}

describe("the summary of a trace", () => {
  it("has the figures of each model", async () => {
    const same = (value: number) => ({ mean: value, p50: value, p90: value, p99: value, max: value });
    expect(summarizeTrace(await readTrace([written()]))).toMatchObject({
      models: [
        {
          model: "m",
          version: 1,
          requests: 3,
          withoutBatch: 1,
          batches: 1,
          meanRows: 3,
          cuts: { DELAY: 1 },
          latencyMs: { mean: 21.5 / 3, p50: 10, p90: 11, max: 11 },
          queueMs: { mean: 3, p50: 2, max: 4 },
          computeMs: same(6),
        },
      ],
      slowest: [{ id: 1 }, { id: 2 }, { id: 3 }],
    });
  });

  it("is text of at most 80 columns, with a timeline of the slowest requests and no control characters", async () => {
    const { code, out } = await run("summary", written());
    expect(code).toBe(0);
    expect(Math.max(...out.split("\n").map((line) => line.length))).toBeLessThanOrEqual(80);
    expect(out).toContain("3 requests in 1 batch, 3.00 rows on average");
    expect(out).toContain("batches cut by DELAY 1");
    expect(out).toMatch(/^m first {17} +11\.0 {2}\.{15}#{22}-{4}$/m);
    expect(out).toMatch(/^m evil\?\[31m\? .* 0\.500 {2}\.\.$/m);
  });

  it("fits the columns for a recorded load too, and is JSON if asked", async () => {
    const { out } = await run("summary", "--slowest", "30", file);
    expect(Math.max(...out.split("\n").map((line) => line.length))).toBeLessThanOrEqual(80);
    const json = JSON.parse((await run("summary", "--json", "--slowest=2", file)).out);
    expect(json.models[0]).toMatchObject({ model: "timed", requests: COUNT, withoutBatch: 0 });
    expect(json.slowest).toHaveLength(2);
    expect(json.slowest[0].endMs - json.slowest[0].queueStartMs).toBe(json.models[0].latencyMs.max);
  });

  it.each([
    [["summary", "missing.json"], 1, "cannot read the trace 'missing.json'"],
    [["summary", "--slowest=-1", "x"], 1, "expected a non-negative integer, got '-1'"],
    [["export", "--format=svg", "x"], 1, "Allowed choices are chrome"],
    [["paint"], 1, "unknown command 'paint'"],
  ])("reports the fault of %j", async (args, code, text) => {
    const result = await run(...args);
    expect(result.err).toContain(text);
    expect(result.code).toBe(code);
  });

  it("names the models of a trace that lacks the wanted one", async () => {
    const { code, err } = await run("summary", "--model", "other", written());
    expect([code, err]).toEqual([
      1,
      expect.stringContaining("model 'other' is not in the trace, which has m"),
    ]);
  });
});

/** Expects that `b` and `e` of each category and id are balanced like brackets, and that their times never go back. */
function expectNestedPairs(events: readonly ChromeEvent[]): void {
  const open = new Map<string, string[]>();
  const last = new Map<string, number>();
  let pairs = 0;
  for (const { ph, cat, id, name, ts } of events) {
    if (ph !== "b" && ph !== "e") continue;
    const key = `${cat} ${id}`;
    expect(ts!).toBeGreaterThanOrEqual(last.get(key) ?? 0);
    last.set(key, ts!);
    const stack = open.get(key) ?? [];
    open.set(key, stack);
    if (ph === "b") stack.push(name);
    else {
      expect(stack.pop()).toBe(name);
      pairs++;
    }
  }
  expect(pairs).toBeGreaterThan(0);
  expect([...open.values()].flat()).toEqual([]);
}

describe("the export for browsers", () => {
  const named = (events: readonly ChromeEvent[], kind: string) =>
    events.filter(({ name }) => name === kind).map(({ pid, tid, args }) => [pid, tid, args?.name]);

  it("has a process for each model, a thread for each instance, and rows of the queue", async () => {
    const { traceEvents } = chromeTrace(await readTrace([written()]));
    expect(named(traceEvents, "process_name")).toEqual([[1, 0, "m 1"]]);
    expect(named(traceEvents, "thread_name")).toEqual([
      [1, 1, "m_0"],
      [1, 10_000, "queue 1"],
      [1, 10_001, "queue 2"],
    ]);
    const spans = traceEvents
      .filter(({ ph }) => ph === "X")
      .map(({ name, tid, ts, dur }) => [name, tid, ts, dur]);
    expect(spans).toEqual([
      ["batch of 3", 1, 6000, 6000],
      ["inputs", 1, 6000, 1000],
      ["model", 1, 7000, 3000],
      ["outputs", 1, 10_000, 2000],
      ["first", 10_000, 2000, 4000],
      ["request 2", 10_001, 4000, 2000],
      ["evil\u001b[31m\n", 10_000, 22_000, 500],
    ]);
  });

  it("has an arrow from the wait of each request to its batch", async () => {
    const { traceEvents } = chromeTrace(await readTrace([file]));
    const starts = traceEvents.filter(({ ph }) => ph === "s");
    const ends = new Map(traceEvents.filter(({ ph }) => ph === "f").map((event) => [event.id, event]));
    expect(starts).toHaveLength(COUNT);
    expect(ends.size).toBe(COUNT);
    const spans = traceEvents.filter(({ ph }) => ph === "X");
    const encloses = (event: ChromeEvent, prefix: string) =>
      spans.some(
        ({ name, tid, ts = 0, dur = 0 }) =>
          name.startsWith(prefix) && tid === event.tid && ts <= event.ts! && event.ts! <= ts + dur,
      );
    for (const start of starts) {
      const end = ends.get(start.id)!;
      expect(end).toMatchObject({ bp: "e", name: start.name, cat: start.cat });
      expect(encloses(start, "request ") && encloses(end, "batch")).toBe(true);
    }
  });

  it("has spans that overlap on no thread unless one contains the other", async () => {
    const { traceEvents } = chromeTrace(await readTrace([file]));
    const rows = new Map<number, ChromeEvent[]>();
    for (const event of traceEvents) {
      if (event.ph !== "X" || /inputs|model|outputs/.test(event.name)) continue;
      rows.set(event.tid, [...(rows.get(event.tid) ?? []), event]);
    }
    expect(rows.size).toBeGreaterThan(2);
    for (const spans of rows.values()) {
      const sorted = spans.sort((a, b) => a.ts! - b.ts!);
      sorted.slice(1).forEach((span, i) => {
        expect(sorted[i]!.ts! + sorted[i]!.dur!).toBeLessThanOrEqual(span.ts! + 0.002);
      });
    }
  });

  it("follows the rules of the Trace Event Format", async () => {
    for (const trace of [file, written()]) {
      const { traceEvents } = chromeTrace(await readTrace([trace]));
      for (const event of traceEvents) {
        expect(Object.keys(event)).toEqual(expect.arrayContaining(["name", "ph", "pid", "tid"]));
        expect([event.pid, event.tid].every(Number.isInteger)).toBe(true);
        if (event.ph === "M") {
          expect(event.args?.name).toBeTypeOf("string");
          continue;
        }
        expect(Number.isFinite(event.ts) && event.ts! >= 0).toBe(true);
        if (event.ph === "X") expect(Number.isFinite(event.dur) && event.dur! > 0).toBe(true);
        else expect([event.cat, event.id].every((value) => typeof value === "string")).toBe(true);
      }
      expectNestedPairs(traceEvents);
      const arrows = traceEvents.filter(({ ph }) => ph === "s" || ph === "f");
      for (const id of new Set(arrows.map((arrow) => arrow.id))) {
        const ends = arrows.filter((arrow) => arrow.id === id);
        expect(ends.map(({ ph }) => ph)).toEqual(["s", "f"]);
        expect(ends[0]!.ts!).toBeLessThanOrEqual(ends[1]!.ts!);
      }
    }
  });

  it("has the whole of each request, with the times of its frontend, as pairs of events", async () => {
    const { traceEvents } = chromeTrace(await readTrace([written()]));
    const first = traceEvents.filter(({ ph, id }) => id === "1.0" && (ph === "b" || ph === "e"));
    expect(first.map(({ name, ph, ts }) => [name, ph, ts])).toEqual([
      ["first", "b", 0],
      ["HTTP receive", "b", 0],
      ["HTTP receive", "e", 1000],
      ["HTTP send", "b", 14_000],
      ["HTTP send", "e", 15_000],
      ["first", "e", 15_000],
    ]);
  });

  it("is written to a file, or to the output", async () => {
    const path = join(folder, "chrome.json");
    const { code, out } = await run("export", written(), "--output", path);
    expect([code, out]).toEqual([0, `wrote ${path}: open it at https://ui.perfetto.dev\n`]);
    expect(readFileSync(path, "utf8")).toBe((await run("export", "--format", "chrome", written())).out);
    expect(JSON.parse(readFileSync(path, "utf8")).displayTimeUnit).toBe("ms");
  });
});
