import { float32ToBfloat16, float32ToFloat16, Tensor } from "@tritonjs/protocol";
import { describe, expect, it } from "vitest";
import { traceBench } from "./trace-bench.js";

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
    const child = parent.child("c");
    const grandchild = child.child("c");
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
    const child = parent.child("c");
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
