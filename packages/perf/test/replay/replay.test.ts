import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { cp, mkdir, readFile, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { batch, Triton } from "@tritonjs/core";
import { recordScheduling } from "@tritonjs/operations/time-travel";
import { readPrototxt } from "@tritonjs/repository/config";
import { deadlines as byDeadline } from "@tritonjs/scheduling";
import { VirtualClock } from "@tritonjs/testing";
import { beforeAll, describe, expect, it, onTestFinished, test } from "vitest";
import { type ReplayFigures, replay } from "../../src/trace/predict.js";
import { readTrace } from "../../src/trace/read-trace.js";
import { type Recording, recordingOf } from "../../src/trace/recording.js";
import { replayTrace } from "../../src/trace/replay.js";
import { temporaryFolder } from "../support/analyze-command.js";
import { runTool } from "../support/run-tool.js";
import { record } from "./support/record.js";

const LOAD = {
  maxBatchSize: 16,
  batcher: { maxQueueDelayMicroseconds: 3000 },
  instances: 2,
  perMs: 0.9,
  count: 1500,
};

const config = (text: string) => ({
  name: "config",
  config: readPrototxt(`name: "timed" backend: "x" ${text}`),
});

const AS_RECORDED = config(
  "max_batch_size: 16 dynamic_batching { max_queue_delay_microseconds: 3000 } instance_group { count: 2 }",
);

let file: string;

let asRecorded: Recording;

beforeAll(async () => {
  file = await record(LOAD);
  asRecorded = recordingOf(await readTrace([file]));
});

function expectClose(predicted: ReplayFigures, actual: ReplayFigures, share: number): void {
  for (const name of ["mean", "p50", "p90", "p99"] as const) {
    expect(Math.abs(predicted.latencyMs[name] / actual.latencyMs[name] - 1), name).toBeLessThan(share);
  }
  expect(Math.abs(predicted.meanBatchRows / actual.meanBatchRows - 1)).toBeLessThan(share);
  expect(Math.abs(predicted.throughput / actual.throughput - 1)).toBeLessThan(share);
}

describe("a replay", () => {
  it("predicts the recorded figures within 15% for the configuration of the recording", async () => {
    const { recorded, predictions, duration, leftOut } = await replay(asRecorded, [AS_RECORDED]);
    expect(recorded).toMatchObject({ answered: 1500, failures: {}, instances: 2 });
    expect(leftOut).toBe(0);
    expect(duration.fixedMs).toBeCloseTo(4, 0);
    expect(duration.perRowMs).toBeCloseTo(0.5, 1);
    expectClose(predictions[0]!.figures, recorded, 0.15);
    expect(Object.keys(predictions[0]!.figures.cuts)).toEqual(
      expect.arrayContaining(Object.keys(recorded.cuts)),
    );
  });

  it("predicts what the same load does with another configuration", async () => {
    const other = { ...LOAD, maxBatchSize: 4, batcher: {}, instances: 3 };
    const actual = recordingOf(await readTrace([await record(other)]));
    const expected = (await replay(actual, [])).recorded;
    const { predictions } = await replay(asRecorded, [
      config("max_batch_size: 4 dynamic_batching {} instance_group { count: 3 }"),
    ]);
    expectClose(predictions[0]!.figures, expected, 0.15);
  });

  it("tells that an overloaded model does not keep up at a higher speed", async () => {
    const slow = config("max_batch_size: 1 instance_group { count: 1 }");
    const { predictions } = await replay(asRecorded, [AS_RECORDED, slow], { speed: 1.5 });
    const [batched, single] = predictions.map(({ figures }) => figures);
    expect(single!.failures).toMatchObject({});
    expect(Object.keys(single!.failures)).toHaveLength(1); // requests of two rows
    expect(single!.latencyMs.p99).toBeGreaterThan(5 * batched!.latencyMs.p99);
    expect(single!.busy).toBeGreaterThan(0.99);
  });

  it("gives the same prediction each time", async () => {
    const short = recordingOf(await readTrace([await record({ ...LOAD, count: 200 })]));
    const run = () => replay(short, [AS_RECORDED]);
    expect(await run()).toEqual(await run());
  });
});

/** Two classes in overload: 30% of the requests have 40 ms, the others 200 ms. */
const CLASSES = {
  maxBatchSize: 16,
  instances: 1,
  perMs: 1.7,
  count: 2000,
  options: (i: number) =>
    i % 10 < 3
      ? { timeoutMs: 40, priority: 1, parameters: { caller: "fast" } }
      : { timeoutMs: 200, priority: 2, parameters: { caller: "slow" } },
};

const PLAIN = config("max_batch_size: 16 dynamic_batching { }");

/** The trace of the two classes without deadlines, and with them. */
let plain: string;

let deadlines: string;

beforeAll(async () => {
  plain = await record({ ...CLASSES, batcher: {} });
  deadlines = await record({ ...CLASSES, batcher: byDeadline() });
});

/** Cause for which most requests of a class were lost. */
const mainCause = ({ causes }: ReplayFigures["classes"][number]) =>
  Object.entries(causes).sort(([, a], [, b]) => b - a)[0]?.[0];

/** Share in time of each class. */
const shares = ({ classes }: ReplayFigures) => classes.map(({ inTime, requests }) => inTime / requests);

describe("a replay with deadlines", () => {
  it("predicts from a recording without them what each class gets with them", async () => {
    const recording = recordingOf(await readTrace([plain]));
    const { recorded, predictions } = await replay(recording, [PLAIN], { set: { deadlines: "true" } });
    expect(predictions.map(({ name }) => name)).toEqual(["config", "config +set"]);
    expect(recorded.classes).toMatchObject([
      { level: 1, caller: "fast", requests: 600 },
      { level: 2, caller: "slow", requests: 1400 },
    ]);
    const real = (await replay(recordingOf(await readTrace([deadlines])), [])).recorded;
    const [asIs, withDeadlines] = predictions.map(({ figures }) => figures);
    expect(Math.abs(asIs!.latencyMs.mean / recorded.latencyMs.mean - 1)).toBeLessThan(0.1);
    expect(Math.abs(withDeadlines!.latencyMs.mean / real.latencyMs.mean - 1)).toBeLessThan(0.1);
    for (const i of [0, 1]) {
      expect(Math.abs(shares(asIs!)[i]! - shares(recorded)[i]!)).toBeLessThan(0.05);
      expect(Math.abs(shares(withDeadlines!)[i]! - shares(real)[i]!)).toBeLessThan(0.05);
      expect(mainCause(real.classes[i]!)).toEqual(expect.any(String));
      expect(mainCause(withDeadlines!.classes[i]!)).toBe(mainCause(real.classes[i]!));
    }
    expect(real.classes.map(({ requests }) => requests)).toEqual([600, 1400]);
    const all = (figures: ReplayFigures) => figures.classes.reduce((sum, one) => sum + one.inTime, 0);
    expect(all(withDeadlines!)).toBeGreaterThan(1.2 * all(recorded));
  });

  it("replays requests that were refused, too", async () => {
    const recording = recordingOf(await readTrace([deadlines]));
    expect(recording.requests).toHaveLength(2000);
    const { recorded, leftOut } = await replay(recording, []);
    expect(leftOut).toBe(0);
    expect(recorded.failures.DEADLINE_TOO_CLOSE).toBeGreaterThan(25);
    expect(recorded.answered + Object.values(recorded.failures).reduce((a, b) => a + b)).toBe(2000);
  });

  it("gives requests without a limit the defaults of the parameters", async () => {
    const { count, ...load } = CLASSES;
    const options = (i: number) => ({ priority: 1 + (i % 2), parameters: { caller: `c${i % 3}` } });
    const file = await record({ ...load, count: 600, perMs: 0.5, options, batcher: {} });
    const recording = recordingOf(await readTrace([file]));
    const set = { deadlines: "true", deadline_level_ms: "1=30", deadline_caller_ms: "c2=20" };
    const { recorded, predictions } = await replay(recording, [PLAIN], { set });
    const named = ({ classes }: ReplayFigures) =>
      classes.map(({ level, caller, requests }) => `${level} ${caller} ${requests}`);
    expect(named(recorded)).toEqual(["1 c0 100", "1 c1 100", "1 c2 100", "2 c2 100"]);
    expect(named(predictions[1]!.figures)).toEqual(named(recorded));
    expect((await replay(recording, [PLAIN])).recorded.classes).toEqual([]);
  });

  it("tries shares of callers", async () => {
    const by = (i: number) => ({ timeoutMs: 100, parameters: { caller: i % 20 === 0 ? "small" : "big" } });
    const recording = recordingOf(
      await readTrace([await record({ ...CLASSES, count: 1000, options: by, batcher: {} })]),
    );
    const set = { deadlines: "true", shares_by: "caller" };
    const { predictions } = await replay(recording, [PLAIN], { set });
    const [asIs, shared] = predictions.map(
      ({ figures }) => figures.classes.find(({ caller }) => caller === "small")!,
    );
    expect(asIs!.inTime / asIs!.requests).toBeLessThan(0.8);
    expect(shared!.inTime / shared!.requests).toBeGreaterThan(0.97);
  });

  it.each([
    [["--set", "deadline=true"], "--set: expected one of deadlines, deadline_default_ms"],
    [["--set", "deadlines"], "--set: expected <parameter>=<value>, got 'deadlines'"],
    [["--set", "deadlines=perhaps"], "expected true or false, got 'perhaps'"],
    [["--set", "deadlines=true", "--set", "deadline_level_ms=1=x"], "default deadline by level of model"],
  ])("refuses %j", async (args, message) => {
    const short = await record({ ...LOAD, count: 50 });
    const path = join(dirname(file), "plain.pbtxt");
    writeFileSync(path, "max_batch_size: 16 dynamic_batching { }");
    let text = "";
    const writeError = (part: string) => {
      text += part;
    };
    const terminal = { write: () => {}, writeError };
    const code = await replayTrace([short, "--config", path, ...args], terminal);
    expect([code, text]).toEqual([1, expect.stringContaining(message)]);
  });

  it("writes a table with the classes, and why requests were lost", async () => {
    const path = join(dirname(file), "plain.pbtxt");
    writeFileSync(path, "max_batch_size: 16 dynamic_batching { }");
    let text = "";
    const write = (part: string) => {
      text += part;
    };
    const terminal = { write, writeError: () => {} };
    expect(await replayTrace([plain, "--config", path, "--set", "deadlines=true"], terminal)).toBe(0);
    expect(text).toMatch(/^In time, 1 fast +\d+\.\d% +\d+\.\d% +\d+\.\d%$/m);
    expect(text).toMatch(/^ {2}refused +\d+ +\d+ +\d+$/m);
    expect(text).toMatch(/\+set: lost of level 1 fast: other_class \d+/);
    expect(text).toMatch(
      /\+set: \d+ x refused, because the answer would have been late \(DEADLINE_TOO_CLOSE\)/,
    );
    for (const line of text.split("\n")) if (!line.includes(":")) expect(line.length).toBeLessThanOrEqual(80);
  });
});

describe("reading a trace", () => {
  const written = (name: string, text: string) => {
    const path = join(dirname(file), name);
    writeFileSync(path, text);
    return path;
  };

  it("reads the beginning that a killed server has written", async () => {
    const text = readFileSync(file, "utf8").trimEnd();
    const cut = written("cut.json", text.slice(0, text.lastIndexOf(',{"id"') + 1));
    expect(await readTrace([cut])).not.toHaveLength(0);
  });

  it.each([
    ["text", "no trace", "expected JSON"],
    ["an object", '{"id":1}', "expected"],
    ["entries without id", '[{"timestamps":[]}]', "expected an object with a number `id` as entry 0"],
  ])("refuses %s", async (_, text, message) => {
    await expect(readTrace([written("bad.json", text)])).rejects.toThrow(message);
  });

  it("refuses a trace of every tenth request", async () => {
    const sampled = await readTrace([await record({ ...LOAD, count: 500, rate: 10 })]);
    expect(() => recordingOf(sampled)).toThrow(
      /cannot replay model 'timed': the trace has \d+ of the \d+ requests of its batches; record every request with rate 1/,
    );
  });

  it("refuses a model that is not in the trace, and names those that are", async () => {
    const trace = await readTrace([file]);
    expect(() => recordingOf(trace, "other")).toThrow("model 'other' is not in the trace, which has timed");
  });

  it("takes one row for each request of a trace of tritonserver", async () => {
    const at = (id: number, name: string, ns: number) => ({ id, timestamps: [{ name, ns }] });
    const entries = [1, 2].flatMap((id) => [
      { id, model_name: "m", model_version: 1 },
      at(id, "QUEUE_START", 1e6 * id),
      at(id, "COMPUTE_START", 3e6),
      at(id, "COMPUTE_END", 5e6),
      at(id, "REQUEST_END", 6e6),
    ]);
    const recording = recordingOf(await readTrace([written("triton.json", JSON.stringify(entries))]));
    expect(recording).toMatchObject({ instances: 1, respondMs: 1, batches: [{ rows: 2, durationMs: 2 }] });
    expect([...recording.latenciesMs]).toEqual([5, 4]);
  });
});

describe("the command replay", () => {
  async function run(...args: string[]): Promise<{ code: number; out: string; err: string }> {
    const out: string[] = [];
    const err: string[] = [];
    const code = await replayTrace(args, {
      write: (text) => void out.push(text),
      writeError: (text) => void err.push(text),
    });
    return { code, out: out.join(""), err: err.join("") };
  }

  it("prints the recording beside each configuration, in 80 columns", async () => {
    const path = join(dirname(file), "config.pbtxt");
    writeFileSync(path, 'name: "timed" backend: "x" max_batch_size: 16 dynamic_batching { }');
    const json = join(dirname(file), "figures.json");
    const { code, out, err } = await run(file, "--config", path, "--config", path, "--json", json);
    expect(code).toBe(0);
    expect(err.split("\n")).toEqual([
      expect.stringMatching(/^replaying with .* \(1 of 2\)$/),
      expect.stringMatching(/^replaying with .* \(2 of 2\)$/),
      "",
    ]);
    expect(out).toContain("recorded");
    expect(out).toContain("…");
    const table = out.split("\n\n")[1]!;
    for (const line of table.split("\n")) expect(line.length).toBeLessThanOrEqual(80);
    expect(JSON.parse(readFileSync(json, "utf8"))).toMatchObject({ model: "timed", predictions: [{}, {}] });
  });

  it("shows help with examples", async () => {
    const { code, out, err } = await run("--help");
    expect([code, err]).toEqual([0, ""]);
    expect(out).toContain("Usage: tritonjs replay [options] <traces...>");
    expect(out).toContain("    tritonjs replay trace.json --config models/resnet/config.pbtxt --speed 2\n");
    for (const option of ["--config", "--model", "--speed", "--json"]) expect(out).toContain(option);
  });

  it.skipIf(!existsSync("/dev/full"))(
    "names the file for which the disk is full, and shows the table",
    async () => {
      const path = join(dirname(file), "config.pbtxt");
      writeFileSync(path, "max_batch_size: 16 dynamic_batching { }");
      const { code, out, err } = await run(file, "--config", path, "--json", "/dev/full");
      expect(code).toBe(1);
      expect(out).toMatch(/^Requests answered +1500 +1500$/m);
      expect(err).toMatch(/^error: Internal: cannot write \/dev\/full: ENOSPC/);
    },
  );

  it.each([
    [["missing.json", "--config", "missing.pbtxt"], "cannot read the configuration"],
    [["missing.json"], "expected --config for traces, or --against for captures, got neither"],
    [["missing.json", "--config", "x", "--speed", "0"], "expected a positive number, got '0'"],
  ])("ends with a clear message for %j", async (args, message) => {
    const { code, err } = await run(...args);
    expect(code).toBe(1);
    expect(err).toContain(message);
  });
});

/** Runs the command, and returns what it wrote. */
async function run(...args: string[]) {
  let [out, err] = ["", ""];
  const code = await replayTrace(args, {
    write: (text) => {
      out += text;
    },
    writeError: (text) => {
      err += text;
    },
  });
  return { code, out, err };
}

const page = (
  await readFile(new URL("../../../../docs/performance-tools.md", import.meta.url), "utf8")
).replaceAll("\r\n", "\n");

const { out: help } = await run("--help");

const commands = [...`${page}${help}`.matchAll(/^ *(tritonjs replay .*)$/gm)].map(([, line]) => line!);

// Captures have tests in capture-replay, recordings of the scheduling and several models in this file.
const lines = new Set(commands.filter((line) => !/--against|--rate-limit|\.tape/.test(line)));

describe("the page about tritonjs replay", () => {
  let trace: string;
  beforeAll(async () => {
    trace = await record({ maxBatchSize: 4, batcher: {}, instances: 1, perMs: 0.1, count: 50 });
  });

  it.each([...lines])("has a command that runs: %s", async (line) => {
    const folder = await temporaryFolder();
    const before = process.cwd();
    onTestFinished(() => process.chdir(before));
    process.chdir(folder);
    await mkdir(join("models", "resnet"), { recursive: true });
    await cp(trace, "trace.json");
    const config = "max_batch_size: 4 dynamic_batching { }";
    for (const path of [join("models", "resnet", "config.pbtxt"), "other.pbtxt"])
      await writeFile(path, config);
    const { code, out, err } = await run(...line.split(" ").slice(2));
    expect({ code, err: code === 0 ? "" : err }).toEqual({ code: 0, err: "" });
    expect(out).toMatch(/^Requests answered +50 +50/m);
  });

  it("has several commands", () => expect(lines.size).toBeGreaterThan(1));

  it("lists every option of the command, and no other", () => {
    const [, section = ""] = /\n## Replay\n(.*?)\n## /s.exec(page) ?? [];
    const listed = [...section.matchAll(/^\| `(--[\w-]+)/gm)].map(([, name]) => name!);
    const known = [...help.split("Examples:")[0]!.matchAll(/^ +(?:-\w, )?(--[\w-]+)/gm)].map(
      ([, name]) => name!,
    );
    expect(listed.toSorted()).toEqual(known.filter((name) => name !== "--help").toSorted());
  });
});

describe("replay batches", () => {
  const run = (...args: string[]) => runTool(replayTrace, args);

  /** Two batches: of request a, and of the three that came while it ran. */
  async function recordTwoBatches(file: string): Promise<void> {
    const clock = new VirtualClock();
    const triton = new Triton({ clock, extensions: [recordScheduling({ file })] });
    const model = triton.bind({
      modelName: "slow",
      inputs: [{ name: "x", dtype: "FP32", shape: [1] }],
      outputs: [{ name: "y", dtype: "FP32", shape: [1] }],
      inferFunc: batch(async ({ x }) => {
        await new Promise<void>((resolve) => clock.setTimer(10, resolve));
        return { y: x };
      }),
      config: { maxBatchSize: 4 },
    });
    await triton.ready();
    const sent = [model.infer({ x: [[1]] }, { id: "a" })];
    await clock.advance(2);
    for (const id of ["b", "c", "d"])
      sent.push(model.infer({ x: [[1]] }, { id, parameters: { caller: "shop" } }));
    await clock.advance(30);
    await Promise.all(sent);
    const closed = triton.close();
    await clock.advance(1);
    await closed;
  }

  test("replays a recording to the same batches, and says for whom a request waited", async () => {
    const file = join(await temporaryFolder(), "minute.tape");
    await recordTwoBatches(file);
    const { code, output } = await run(file, "--batches", "--explain", "c");
    expect(code).toBe(0);
    expect(output).toContain("minute.tape: 4 requests, 2 batches, identical\n");
    expect(output).toContain("request 'c' (#2) of shop to model 'slow' version 1, 1 rows, priority 0");
    expect(output).toContain("waited 8.000 ms, behind 1 request: 'b' (#1)");
    expect(output).toContain("meanwhile ran 1 batch: #0 of 1 rows");
    expect(output).toContain("shared it with 2 requests: 'b' (#1), 'd' (#3)");
    expect(output).toContain("answered at 20.000 ms");
  });

  test("exits with 1 and names the first batch that differs", async () => {
    const folder = await temporaryFolder();
    const file = join(folder, "minute.tape");
    await recordTwoBatches(file);
    const bytes = readFileSync(file);
    // As if the model had allowed batches of two rows.
    const changed = Buffer.from(
      bytes.toString("latin1").replace('"maxBatchSize":4', '"maxBatchSize":2'),
      "latin1",
    );
    writeFileSync(file, changed);
    const { code, output } = await run(file, "--batches");
    expect(code).toBe(1);
    expect(output).toMatch(
      /then a difference at [\d.]+ ms of model 'slow': expected batch 1 of requests 1, 2, 3 /,
    );
    expect(output).toMatch(/got batch 1 of requests 1, 2 at instance 0, cut by SIZE/);
  });

  test("refuses files that are not recordings, and requests that are not in a recording", async () => {
    const folder = await temporaryFolder();
    const file = join(folder, "minute.tape");
    await recordTwoBatches(file);
    expect((await run(file, "--explain", "z")).errors).toContain(
      "the recording has no request 'z': expected the id of a request, or a number below 4",
    );
    const cut = join(folder, "cut.tape");
    writeFileSync(cut, readFileSync(file).subarray(0, -8));
    expect((await run(cut, "--batches")).errors).toContain("is not a recording of the scheduling: expected");
    writeFileSync(cut, "[]");
    expect((await run(cut, "--batches")).errors).toContain('begins with {"format":"tritonjs-scheduling"');
    expect(await run(join(folder, "none.tape"), "--batches")).toMatchObject({ code: 1 });
  });
});
