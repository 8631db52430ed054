import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { readPrototxt } from "@tritonjs/core/config";
import { beforeAll, describe, expect, it } from "vitest";
import { readTrace, recordingOf } from "../../../src/trace/read-trace.js";
import type { ReplayFigures } from "../../../src/trace/replay.js";
import { replay, replayTrace } from "../../../src/trace/replay.js";
import { record } from "./support/record.js";

const LOAD = {
  maxBatchSize: 16,
  batcher: { maxQueueDelayMicroseconds: 3000 },
  instances: 2,
  perMs: 0.9,
  count: 3000,
};

const config = (text: string) => ({
  name: "config",
  config: readPrototxt(`name: "timed" backend: "x" ${text}`),
});

const AS_RECORDED = config(
  "max_batch_size: 16 dynamic_batching { max_queue_delay_microseconds: 3000 } instance_group { count: 2 }",
);

let file: string;
beforeAll(async () => {
  file = await record(LOAD);
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
    const { recorded, predictions, duration, leftOut } = await replay(recordingOf(await readTrace([file])), [
      AS_RECORDED,
    ]);
    expect(recorded).toMatchObject({ answered: 3000, failures: {}, instances: 2 });
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
    const { predictions } = await replay(recordingOf(await readTrace([file])), [
      config("max_batch_size: 4 dynamic_batching {} instance_group { count: 3 }"),
    ]);
    expectClose(predictions[0]!.figures, expected, 0.15);
  });

  it("tells that an overloaded model does not keep up at a higher speed", async () => {
    const recording = recordingOf(await readTrace([file]));
    const slow = config("max_batch_size: 1 instance_group { count: 1 }");
    const { predictions } = await replay(recording, [AS_RECORDED, slow], { speed: 1.5 });
    const [batched, single] = predictions.map(({ figures }) => figures);
    expect(single!.failures).toMatchObject({});
    expect(Object.keys(single!.failures)).toHaveLength(1); // requests of two rows
    expect(single!.latencyMs.p99).toBeGreaterThan(5 * batched!.latencyMs.p99);
    expect(single!.busy).toBeGreaterThan(0.99);
  });

  it("gives the same prediction each time", async () => {
    const recording = recordingOf(await readTrace([file]));
    const run = () => replay(recording, [AS_RECORDED]);
    expect(await run()).toEqual(await run());
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
      expect(out).toMatch(/^Requests answered +3000 +3000$/m);
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
