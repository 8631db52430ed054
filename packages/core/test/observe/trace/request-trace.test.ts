import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { float32ToBfloat16, float32ToFloat16, Tensor } from "@tritonjs/protocol";
import { describe, expect, it } from "vitest";
import { RecordedTrace, Trace } from "../../../src/observe/recorded-trace.js";
import { requestsIn, traceBench } from "./trace-bench.js";

const noInputs = { id: "", inputs: new Map<string, Tensor>() };

describe("trace timestamps", () => {
  it("are nanoseconds, one entry each, beside the facts of the request", async () => {
    const { tracing, read } = traceBench();
    const trace = tracing.sample("m")!;
    trace.mark("HTTP_RECV_START", 0.25);
    trace.begin('m"', 3, { ...noInputs, id: "a\n" }, 1);
    trace.batch({ batchSize: 4, requestCount: 2, cut: "PREFERRED", instance: "m_0_1" });
    trace.compute({ start: 2, inputEnd: 3, inferEnd: 4, end: 5 });
    trace.outputs(new Map([["y", Tensor.fromElements("UINT8", [1], Uint8Array.of(1))]]));
    trace.end(6);
    trace.release();
    await tracing.close();
    const at = (name: string, ns: number) => ({ id: 1, timestamps: [{ name, ns }] });
    expect(read()).toEqual([
      at("HTTP_RECV_START", 250_000),
      { id: 1, model_name: 'm"', model_version: 3, request_id: "a\n" },
      at("REQUEST_START", 1_000_000),
      at("QUEUE_START", 1_000_000),
      { id: 1, request: { rows: 1 } },
      { id: 1, batch: { size: 4, requests: 2, cut: "PREFERRED", instance: "m_0_1" } },
      at("COMPUTE_START", 2_000_000),
      at("COMPUTE_INPUT_END", 3_000_000),
      at("COMPUTE_OUTPUT_START", 4_000_000),
      at("COMPUTE_END", 5_000_000),
      at("REQUEST_END", 6_000_000),
    ]);
  });

  it("record the properties of a request that decide about its batch", async () => {
    const { tracing, read } = traceBench();
    const trace = tracing.sample("m")!;
    const sequence = { correlationId: 5n, sequenceStart: true, sequenceEnd: false };
    const limits = { queueTimeoutMicroseconds: 50, deadline: 31, clientLimitMs: 40, caller: "a" };
    trace.begin("m", 1, { ...noInputs, rows: 3, priority: 2, ...limits, ...sequence }, 1);
    trace.end(2);
    trace.release();
    await tracing.close();
    expect(read()).toContainEqual({
      id: 1,
      request: {
        rows: 3,
        priority: 2,
        queue_timeout_us: 50,
        limit_ms: 30,
        ends: true,
        caller: "a",
        sequence: { id: "5", start: true },
      },
    });
  });

  it("are left out when only tensors are traced, while the request is still named", async () => {
    const { tracing, read } = traceBench({ level: "TENSORS" });
    const trace = tracing.sample("m")!;
    trace.begin("m", 1, noInputs, 1);
    trace.batch({ batchSize: 1, requestCount: 1, cut: undefined, instance: "m_0" });
    trace.end(2);
    trace.release();
    await tracing.close();
    expect(read()).toEqual([{ id: 1, model_name: "m", model_version: 1 }]);
  });

  it("are only those of the frontend for a rejected request", async () => {
    const { tracing, read } = traceBench();
    const trace = tracing.sample("m")!;
    trace.mark("HTTP_RECV_START", 1);
    trace.end(2);
    trace.release();
    await tracing.close();
    expect(read()).toEqual([{ id: 1, timestamps: [{ name: "HTTP_RECV_START", ns: 1_000_000 }] }]);
  });
});

describe("child requests", () => {
  it("name their parents and are in the same trace", async () => {
    const { tracing, read, files } = traceBench({ logFrequency: 1 });
    const parent = tracing.sample("m")!;
    parent.begin("m", 1, noInputs, 1);
    const child = parent.child("c")!;
    const grandchild = child.child("c")!;
    child.begin("c", 1, noInputs, 2);
    grandchild.begin("g", 2, noInputs, 2);
    parent.end(3);
    parent.release();
    grandchild.end(4);
    child.end(5);
    await tracing.close();
    expect(files()).toEqual(["trace.json.0"]);
    const models = read("trace.json.0").filter((entry) => "model_name" in entry);
    expect(models).toEqual([
      { id: 1, model_name: "m", model_version: 1 },
      { id: 2, model_name: "c", model_version: 1, parent_id: 1 },
      { id: 3, model_name: "g", model_version: 2, parent_id: 2 },
    ]);
  });

  it("are not recorded after the trace has ended", async () => {
    const { tracing, read } = traceBench();
    const parent = tracing.sample("m")!;
    parent.begin("m", 1, noInputs, 1);
    parent.end(2);
    parent.release();
    const child = parent.child("c")!;
    child.begin("c", 1, noInputs, 3);
    child.mark("X", 3);
    child.end(4);
    await tracing.close();
    expect(read().every(({ id }) => id === 1)).toBe(true);
  });
});

describe("traced tensors", () => {
  it.each<[Tensor, string]>([
    [Tensor.fromElements("BOOL", [2], Uint8Array.of(1, 0)), "1,0"],
    [Tensor.fromElements("UINT8", [2], Uint8Array.of(65, 255)), "65,255"],
    [Tensor.fromElements("INT16", [2], Int16Array.of(-1, 2)), "-1,2"],
    [Tensor.fromElements("INT64", [1], BigInt64Array.of(-(2n ** 63n))), "-9223372036854775808"],
    [Tensor.fromElements("FP32", [3], Float32Array.of(0.1, 1 / 3, 16777216)), "0.1,0.33333334,16777216"],
    [Tensor.fromElements("FP64", [2], Float64Array.of(0.1, Number.NaN)), "0.1,NaN"],
    [Tensor.fromElements("FP16", [2], float32ToFloat16([1.5, -2])), "1.5,-2"],
    [Tensor.fromElements("BF16", [1], float32ToBfloat16([0.5])), "0.5"],
    [Tensor.fromElements("BYTES", [2], [Buffer.from('a"b\n'), Buffer.from("é,")]), '"a""b\n","é,"'],
    [Tensor.fromElements("FP32", [0], new Float32Array(0)), ""],
  ])("%o are written as %j", async (tensor, data) => {
    const { tracing, read } = traceBench({ level: "TENSORS" });
    const trace = tracing.sample("m")!;
    trace.begin("m", 1, { id: "", inputs: new Map([["x", tensor]]) }, 0);
    trace.end(1);
    trace.release();
    await tracing.close();
    const { datatype: dtype, shape } = tensor;
    expect(read().find((entry) => "tensor" in entry)).toEqual({
      id: 1,
      activity: "TENSOR_QUEUE_INPUT",
      tensor: { name: "x", data, shape: shape.join(","), dtype },
    });
  });

  it("show the values at that moment, even if their memory changes later", async () => {
    const { tracing, read } = traceBench({ level: "TENSORS" });
    const trace = tracing.sample("m")!;
    const elements = Float32Array.of(1, 2);
    trace.outputs(new Map([["y", Tensor.fromElements("FP32", [2], elements)]]));
    elements.fill(9);
    trace.release();
    await tracing.close();
    expect(read()).toMatchObject([{ activity: "TENSOR_BACKEND_OUTPUT", tensor: { data: "1,2" } }]);
  });

  it("are written whole at any size", async () => {
    const { tracing, read } = traceBench({ level: "TENSORS" });
    const trace = tracing.sample("m")!;
    const elements = Int32Array.from({ length: 10_001 }, (_, i) => i);
    trace.outputs(new Map([["y", Tensor.fromElements("INT32", [73, 137], elements)]]));
    trace.release();
    await tracing.close();
    const [{ tensor }] = read() as unknown as [{ tensor: { data: string } }];
    expect(tensor.data).toBe([...elements].join(","));
  });
});

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
