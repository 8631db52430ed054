import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Tensor } from "@tritonjs/protocol";
import { describe, expect, it } from "vitest";
import { RecordedTrace, Trace } from "../../../src/observe/recorded-trace.js";
import { requestsIn, traceBench } from "./trace-bench.js";

describe("a trace file", () => {
  it("is written when the server ends, replacing an older file", async () => {
    const { tracing, run, read, files, folder } = traceBench();
    writeFileSync(join(folder, "trace.json"), "old");
    run();
    run();
    await tracing.close();
    expect(files()).toEqual(["trace.json"]);
    expect(requestsIn(read())).toBe(2);
  });

  it("is not created without a trace", async () => {
    const { tracing, files } = traceBench();
    await tracing.close();
    expect(files()).toEqual([]);
  });

  it("has the traces of all settings, one after the other", async () => {
    const { tracing, run, read } = traceBench();
    run();
    tracing.update("", { rate: 1 });
    run();
    tracing.update("m", { rate: 1 });
    run("m");
    run("other");
    await tracing.close();
    expect(requestsIn(read())).toBe(4);
  });

  it("is written early when there is much to write", async () => {
    const { tracing, run, files, read } = traceBench();
    for (let i = 0; i < 1024; i++) run();
    await tracing.close();
    run();
    expect(files()).toEqual(["trace.json"]);
    expect(requestsIn(read())).toBe(1024);
  });
});

describe("numbered trace files", () => {
  it("hold the configured number of traces, the last one the rest", async () => {
    const { tracing, run, files, read } = traceBench({ logFrequency: 2 });
    for (let i = 0; i < 5; i++) run();
    await tracing.close();
    expect(files()).toEqual(["trace.json.0", "trace.json.1", "trace.json.2"]);
    expect(files().map((name) => requestsIn(read(name)))).toEqual([2, 2, 1]);
  });

  it("are numbered across all settings", async () => {
    const { tracing, run, files, read } = traceBench();
    tracing.update("m", { logFrequency: 1 });
    run("m");
    run("other");
    tracing.update("m", { logFrequency: 2 });
    run("m");
    await tracing.close();
    expect(files()).toEqual(["trace.json", "trace.json.0", "trace.json.1"]);
    expect(read("trace.json.1")[0]).toMatchObject({ model_name: "m" });
  });

  it("receive the counted traces when the count ends", async () => {
    const { tracing, run, files, read } = traceBench();
    run();
    tracing.update("", { count: 3 });
    for (let i = 0; i < 5; i++) run();
    await tracing.close();
    expect(files()).toEqual(["trace.json", "trace.json.0"]);
    expect([requestsIn(read()), requestsIn(read("trace.json.0"))]).toEqual([1, 3]);
  });

  it("stay one file even when writing begins early", async () => {
    const { tracing, run, files, read } = traceBench({ logFrequency: 3000 });
    for (let i = 0; i < 3001; i++) run();
    await tracing.close();
    expect(files()).toEqual(["trace.json.0", "trace.json.1"]);
    expect(files().map((name) => requestsIn(read(name)))).toEqual([3000, 1]);
  });
});

describe("a trace in progress", () => {
  it("is written where its replaced setting would have written it", async () => {
    const { tracing, run, files, read, clock } = traceBench({ logFrequency: 10 });
    const late = tracing.sample("m")!;
    run();
    tracing.update("", { logFrequency: 0 });
    late.begin("late", 1, { id: "", inputs: new Map() }, clock.now());
    late.end(clock.now());
    late.release();
    run();
    await tracing.close();
    expect(files()).toEqual(["trace.json", "trace.json.0"]);
    expect(read("trace.json.0").map((entry) => entry.model_name)).toContain("late");
  });

  it("is left out when the server ends", async () => {
    const { tracing, run, read } = traceBench();
    const late = tracing.sample("m")!;
    run();
    await tracing.close();
    late.release();
    expect(read().map(({ id }) => id)).not.toContain(1);
  });
});

describe("a trace file that cannot be written", () => {
  it("is reported in the log", async () => {
    const { tracing, run, messages, folder } = traceBench();
    mkdirSync(join(folder, "trace.json"));
    run();
    await tracing.close();
    expect(messages).toEqual([expect.stringMatching(/^failed creating trace file: .*EISDIR/)]);
  });

  it("does not stop the next one from being written", async () => {
    const { tracing, run, messages, folder, read } = traceBench({ logFrequency: 1 });
    mkdirSync(join(folder, "trace.json.0"));
    run();
    run();
    await tracing.close();
    expect(messages).toHaveLength(1);
    expect(requestsIn(read("trace.json.1"))).toBe(1);
  });
});

describe("trace memory", () => {
  it("is bounded: traces that come faster than the disk writes are dropped and logged", async () => {
    const { tracing, messages, clock, folder } = traceBench({ level: "TENSORS", logFrequency: 1 });
    // Writes that fail spare the test the work of writing.
    for (const i of [0, 1, 2]) mkdirSync(join(folder, `trace.json.${i}`));
    const big = new Map([["x", Tensor.fromElements("BYTES", [1], [new Uint8Array(2 ** 24 - 8).fill(97)])]]);
    for (let i = 0; i < 6; i++) {
      const trace = tracing.sample("m")!;
      trace.begin("m", 1, { id: "", inputs: big }, clock.now());
      trace.end(clock.now());
      trace.release();
    }
    await tracing.close();
    expect(messages.filter((message) => !message.includes("EISDIR"))).toEqual([
      expect.stringMatching(/^3 traces were lost: writing '.*' is slower than tracing$/),
    ]);
    expect(messages).toHaveLength(4);
  });

  it("is bounded for one trace, whose truncation is recorded once", () => {
    const trace = new Trace({ levels: ["TENSORS"], nextId: () => 1, collect() {} });
    const recorded = new RecordedTrace(trace);
    const outputs = new Map([["y", Tensor.fromElements("BYTES", [1], [new Uint8Array(2 ** 24).fill(97)])]]);
    for (let i = 0; i < 9; i++) recorded.outputs(outputs);
    expect(trace.entries).toHaveLength(4);
    expect(trace.entries[3]).toEqual({ id: 1, truncated: true });
  });
});
