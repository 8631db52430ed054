import { Tensor, TritonError } from "@tritonjs/core";
import ndarray from "ndarray";
import { describe, expect, it } from "vitest";
import type { HttpInferInput } from "../../src/http/client-options.js";
import { type InferCall, InferenceServerClient } from "../../src/http/index.js";
import { decodeInferResponse, encodeInferRequest } from "../../src/http/infer-messages.js";
import { fakeFetch, json } from "./support/fake-fetch.js";
import { bindIdentity, serve } from "./support/serve.js";

function encode(call: InferCall): unknown {
  const { body, jsonLength } = encodeInferRequest(call);
  return JSON.parse(new TextDecoder().decode(body.subarray(0, jsonLength)));
}

function encodeText(call: InferCall): string {
  return new TextDecoder().decode(encodeInferRequest(call).body);
}

function refusal(call: InferCall): TritonError {
  try {
    encodeInferRequest(call);
  } catch (error) {
    expect(TritonError.is(error)).toBe(true);
    return error as TritonError;
  }
  throw new Error("the request was encoded");
}

const inputs = { x: Float32Array.of(1, 2) };

describe("an input", () => {
  it.each<[string, HttpInferInput, string, number[]]>([
    ["a typed array", Float32Array.of(1, 2), "FP32", [2]],
    ["an ndarray", ndarray(Int16Array.of(1, 2), [2, 1]), "INT16", [2, 1]],
    ["a tensor", Tensor.fromElements("FP16", [1], Uint16Array.of(1)), "FP16", [1]],
    ["nested booleans", [[true], [false]], "BOOL", [2, 1]],
    ["nested bigints", [[1n, 2n]], "INT64", [1, 2]],
    ["strings", ["a", "b"], "BYTES", [2]],
    ["a string", "a", "BYTES", []],
    ["byte arrays", [Uint8Array.of(1)], "BYTES", [1]],
    ["clamped bytes", new Uint8ClampedArray(2) as unknown as Uint8Array, "UINT8", [2]],
    ["a view of a Buffer", Buffer.from("ab"), "UINT8", [2]],
    ["numbers with a data type", { datatype: "UINT8", data: [[1], [2]] }, "UINT8", [2, 1]],
    ["flat numbers with a shape", { datatype: "UINT8", shape: [2, 1], data: [1, 2] }, "UINT8", [2, 1]],
    ["a typed array with an open shape", { shape: [-1, 1], data: Int8Array.of(1, 2) }, "INT8", [2, 1]],
    ["a scalar", { datatype: "INT32", data: 5 }, "INT32", []],
    ["bytes meant as booleans", { datatype: "BOOL", data: Uint8Array.of(1) }, "BOOL", [1]],
  ])("can be %s", (_form, input, datatype, shape) => {
    expect(encode({ inputs: { x: input } })).toMatchObject({ inputs: [{ name: "x", datatype, shape }] });
  });

  it.each<[string, HttpInferInput, string]>([
    ["numbers without a data type", [1, 2], "input 'x' has no datatype"],
    ["nothing in no type", [], "input 'x' has no datatype"],
    ["a wrong typed array", { datatype: "FP32", data: Int32Array.of(1) }, "expected Float32Array"],
    ["a wrong scalar", { datatype: "UINT8", data: [256] }, "expected an integer in [0, 255], got 256"],
    ["ragged arrays", { datatype: "UINT8", data: [[1, 2], [3]] }, "expected nested arrays of shape [2,2]"],
    ["too few elements", { datatype: "UINT8", shape: [3], data: [1, 2] }, "for shape [3], got"],
    ["too few in an array", { shape: [3], data: Uint8Array.of(1) }, "for shape [3], got"],
    ["an unknown data type", { datatype: "FP8" as "FP16", data: [1] }, "unknown data type 'FP8'"],
  ])("cannot be %s", (_form, input, message) => {
    const error = refusal({ inputs: { x: input } });
    expect(error.code).toBe("INVALID_ARG");
    expect(error.message).toContain(message);
  });

  it("can be in shared memory", () => {
    const sharedMemory = { region: "r", byteSize: 8, offset: 4 };
    expect(encode({ inputs: { x: { datatype: "FP32", shape: [2], sharedMemory } } })).toMatchObject({
      inputs: [
        {
          name: "x",
          parameters: { shared_memory_region: "r", shared_memory_byte_size: 8, shared_memory_offset: 4 },
        },
      ],
    });
  });

  it("is left out when it is undefined, and may have any name", () => {
    const odd = Object.fromEntries([["__proto__", Int8Array.of(1)]]);
    expect(encode({ inputs: { ...odd, x: undefined as unknown as HttpInferInput } })).toMatchObject({
      inputs: [{ name: "__proto__" }],
    });
  });
});

describe("binary tensors", () => {
  it("follow the JSON in the order of the inputs", () => {
    const { body, jsonLength } = encodeInferRequest({
      inputs: { b: Uint8Array.of(1, 2), a: { data: Uint8Array.of(9), binary: false }, c: ["é"] },
    });
    expect([...body.subarray(jsonLength)]).toEqual([1, 2, 2, 0, 0, 0, 0xc3, 0xa9]);
    expect(JSON.parse(new TextDecoder().decode(body.subarray(0, jsonLength))).inputs).toEqual([
      { name: "b", datatype: "UINT8", shape: [2], parameters: { binary_data_size: 2 } },
      { name: "a", datatype: "UINT8", shape: [1], data: [9] },
      { name: "c", datatype: "BYTES", shape: [1], parameters: { binary_data_size: 6 } },
    ]);
  });
});

describe("JSON tensors", () => {
  const data = (input: HttpInferInput) =>
    /"data":(\[.*?\])/.exec(encodeText({ inputs: { x: input }, binary: false }))?.[1];

  it("are written exactly", () => {
    expect(data(BigInt64Array.of(2n ** 63n - 1n))).toBe("[9223372036854775807]");
    expect(data(Float64Array.of(Number.NaN, Number.NEGATIVE_INFINITY, -0, 0.1))).toBe(
      "[NaN,-Infinity,-0.0,0.1]",
    );
    expect(data([true, false])).toBe("[true,false]");
    expect(data(['"\ud800'])).toBe('["\\"\ufffd"]');
  });

  it("cannot hold half floats or bytes that are not UTF-8", () => {
    const halves = { inputs: { x: { datatype: "FP16" as const, data: [1] } }, binary: false };
    expect(refusal(halves).message).toBe("input 'x': cannot send FP16 as JSON; send it as binary");
    expect(refusal({ inputs: { x: [Uint8Array.of(0xff)] }, binary: false }).message).toContain("not UTF-8");
  });

  it("request JSON outputs and need no header", () => {
    expect(encodeInferRequest({ inputs, binary: false }).jsonLength).toBeUndefined();
    expect(encode({ inputs, binary: false })).not.toHaveProperty("parameters");
  });
});

describe("requested outputs", () => {
  it("are all binary when none is named", () => {
    expect(encode({ inputs })).toMatchObject({ parameters: { binary_data_output: true } });
    expect(encode({ inputs })).not.toHaveProperty("outputs");
  });

  it("each choose their own form", () => {
    const sharedMemory = { region: "r", byteSize: 8 };
    const outputs = [
      "a",
      { name: "b", binary: false },
      { name: "c", classes: 3 },
      { name: "d", sharedMemory },
    ];
    expect(encode({ inputs, outputs })).toMatchObject({
      outputs: [
        { name: "a", parameters: { binary_data: true } },
        { name: "b", parameters: { binary_data: false } },
        { name: "c", parameters: { binary_data: true, classification: 3 } },
        { name: "d", parameters: { shared_memory_region: "r", shared_memory_byte_size: 8 } },
      ],
    });
    expect(encode({ inputs, outputs })).not.toHaveProperty("parameters");
  });
});

describe("request parameters", () => {
  it("include those that the protocol defines", () => {
    const call = {
      inputs,
      binary: false,
      id: "i",
      priority: 2,
      queueTimeoutMicroseconds: 5,
      sequence: { id: 2n ** 64n - 1n, start: true },
      parameters: { a: 1, b: 0.5, c: "x", d: true, e: 2n ** 60n },
    };
    expect(encodeText(call)).toMatch(
      /^\{"id":"i","parameters":\{"a":1,"b":0.5,"c":"x","d":true,"e":1152921504606846976,"sequence_id":18446744073709551615,"sequence_start":true,"sequence_end":false,"priority":2,"timeout":5\},"inputs"/,
    );
  });

  it.each(["sequence_id", "priority", "timeout", "headers", "binary_data_output", "triton_x"])(
    "cannot be named %s",
    (name) => {
      expect(refusal({ inputs, parameters: { [name]: 1 } }).message).toBe(
        `Parameter "${name}" is a reserved parameter and cannot be specified.`,
      );
    },
  );
});

const output = { name: "y", datatype: "FP32", shape: [2] };

function decode(json: unknown, binary = 0, length?: string) {
  const text = new TextEncoder().encode(typeof json === "string" ? json : JSON.stringify(json));
  const body = new Uint8Array(text.length + binary);
  body.set(text);
  return decodeInferResponse(
    body,
    new Headers({ "inference-header-content-length": length ?? `${text.length}` }),
  );
}

function binary(size: unknown, more: object = {}) {
  return { outputs: [{ ...output, parameters: { binary_data_size: size }, ...more }] };
}

describe("the answer to an inference", () => {
  it.each<[string, () => unknown, string]>([
    ["is not JSON", () => decode("<html>no</html>"), "not JSON: <html>no</html>"],
    ["is cut short", () => decode('{"outputs":[{"name"'), "not JSON"],
    ["has no outputs", () => decode({}), "no outputs: {}"],
    ["is an array", () => decode([]), "no outputs"],
    [
      "has a JSON length beyond the body",
      () => decode(binary(8), 0, "4000"),
      "the size of the body, got 4000",
    ],
    ["has an invalid JSON length", () => decode(binary(8), 8, "-1"), "the size of the body, got -1"],
    ["has an output without a name", () => decode({ outputs: [{}] }), "an output has no name"],
    [
      "has an unknown data type",
      () => decode({ outputs: [{ ...output, datatype: "X" }] }),
      "a known datatype, got 'X'",
    ],
    ["has no shape", () => decode({ outputs: [{ ...output, shape: [-1] }] }), "has no shape"],
    [
      "has a huge shape",
      () => decode({ outputs: [{ ...output, shape: [2 ** 50, 2 ** 50], data: [] }] }),
      "too large",
    ],
    ["has a bad size", () => decode(binary(-1)), "as binary_data_size, got -1"],
    ["ends too early", () => decode(binary(8), 7), "output 'y' ends after the end of the body"],
    ["has bytes left over", () => decode(binary(8), 9), "1 bytes do not belong to an output"],
    ["has the wrong size", () => decode(binary(4), 4), "elements, got 1"],
    ["has half an element", () => decode(binary(7), 7), "expected a whole number of FP32 elements"],
    [
      "has half a string",
      () => decode(binary(6, { datatype: "BYTES" }), 6),
      "ends in the middle of an element",
    ],
    ["has too few elements", () => decode({ outputs: [{ ...output, data: [1] }] }), "elements, got 1"],
    [
      "has elements of another type",
      () => decode({ outputs: [{ ...output, data: ["a", null] }] }),
      "expected a number",
    ],
    [
      "has no array as data",
      () => decode({ outputs: [{ ...output, data: "x" }] }),
      "expected an array as data",
    ],
  ])("is an error of the server when it %s", (_case, read, message) => {
    let error: unknown;
    try {
      read();
    } catch (thrown) {
      error = thrown;
    }
    expect(TritonError.is(error) && error.code).toBe("INTERNAL");
    expect((error as Error).message).toContain("cannot read the server's answer as an inference response");
    expect((error as Error).message).toContain(message);
    expect((error as Error).message.length).toBeLessThan(400);
  });

  it("may nest its data in any way and print doubles as integers", () => {
    const text =
      '{"outputs":[{"name":"y","datatype":"FP64","shape":[2,2],"data":[[1,12345678901234567890],[NaN,-Infinity]]}]}';
    const values = decode(text).elements("y", "FP64");
    expect([...values]).toEqual([1, Number("12345678901234567890"), Number.NaN, Number.NEGATIVE_INFINITY]);
  });

  it("may have outputs in shared memory, which the result omits", () => {
    const result = decode({ outputs: [output] });
    expect([...result.tensors.keys()]).toEqual([]);
    expect(result.response.json.outputs).toEqual([output]);
    expect(() => result.array("y")).toThrow("the answer has no output 'y': got none");
  });

  it("rejects reading an output as another data type", () => {
    const result = decode({ outputs: [{ ...output, data: [1, 2] }] });
    expect(() => result.array("y", "INT8")).toThrow("output 'y': expected INT8, got FP32");
    expect(result.array("y", "FP32").get(1)).toBe(2);
  });

  it("may have an output with any name", () => {
    const result = decode('{"outputs":[{"name":"__proto__","datatype":"INT8","shape":[1],"data":[5]}]}');
    expect(Object.keys(result.outputs)).toEqual(["__proto__"]);
    expect([...result.elements("__proto__", "INT8")]).toEqual([5]);
  });
});

type Call = (client: InferenceServerClient) => Promise<unknown>;

describe("each client call", () => {
  it.each<[string, string, Call, unknown?]>([
    ["GET", "v2/health/live", (c) => c.isServerLive()],
    ["GET", "v2/health/ready", (c) => c.isServerReady()],
    ["GET", "v2/models/m/ready", (c) => c.isModelReady("m")],
    ["GET", "v2/models/m/versions/3/ready", (c) => c.isModelReady("m", { modelVersion: 3 })],
    ["GET", "v2", (c) => c.getServerMetadata()],
    ["GET", "v2/models/a%2Fb%20c", (c) => c.getModelMetadata("a/b c")],
    ["GET", "v2/models/m/versions/1/config", (c) => c.getModelConfig("m", { modelVersion: "1" })],
    ["GET", "v2/models/stats", (c) => c.getInferenceStatistics()],
    ["GET", "v2/models/m/versions/1/stats", (c) => c.getInferenceStatistics("m", { modelVersion: 1 })],
    ["POST", "v2/repository/index", (c) => c.getModelRepositoryIndex(), {}],
    ["POST", "v2/repository/index", (c) => c.getModelRepositoryIndex({ ready: true }), { ready: true }],
    ["POST", "v2/repository/models/m/load", (c) => c.loadModel("m"), { parameters: {} }],
    [
      "POST",
      "v2/repository/models/m/load",
      (c) => c.loadModel("m", { config: { max_batch_size: 2 }, files: { "1/a": Uint8Array.of(0xfb, 0xff) } }),
      { parameters: { config: '{"max_batch_size":2}', "file:1/a": "+/8=" } },
    ],
    [
      "POST",
      "v2/repository/models/m/unload",
      (c) => c.unloadModel("m", { unloadDependents: true }),
      { parameters: { unload_dependents: true } },
    ],
    ["GET", "v2/trace/setting", (c) => c.getTraceSettings()],
    ["GET", "v2/models/m/trace/setting", (c) => c.getTraceSettings({ modelName: "m" })],
    [
      "POST",
      "v2/models/m/trace/setting",
      (c) => c.updateTraceSettings({ trace_level: ["TIMESTAMPS"], trace_rate: null }, { modelName: "m" }),
      { trace_level: ["TIMESTAMPS"], trace_rate: null },
    ],
    ["GET", "v2/logging", (c) => c.getLogSettings()],
    ["POST", "v2/logging", (c) => c.updateLogSettings({ log_verbose_level: 1 }), { log_verbose_level: 1 }],
    ["GET", "v2/systemsharedmemory/status", (c) => c.getSystemSharedMemoryStatus()],
    ["GET", "v2/systemsharedmemory/region/r/status", (c) => c.getSystemSharedMemoryStatus("r")],
    [
      "POST",
      "v2/systemsharedmemory/region/r/register",
      (c) => c.registerSystemSharedMemory("r", { key: "/k", byteSize: 8 }),
      { key: "/k", offset: 0, byte_size: 8 },
    ],
    ["POST", "v2/systemsharedmemory/unregister", (c) => c.unregisterSystemSharedMemory(), {}],
    ["GET", "v2/cudasharedmemory/region/r/status", (c) => c.getCudaSharedMemoryStatus("r")],
    [
      "POST",
      "v2/cudasharedmemory/region/r/register",
      (c) => c.registerCudaSharedMemory("r", { rawHandle: Uint8Array.of(1), deviceId: 0, byteSize: 8 }),
      { raw_handle: { b64: "AQ==" }, device_id: 0, byte_size: 8 },
    ],
    ["POST", "v2/cudasharedmemory/region/r/unregister", (c) => c.unregisterCudaSharedMemory("r"), {}],
    ["POST", "v2/models/m/generate", (c) => c.generate("m", { a: "b", n: 1n }), { a: "b", n: 1 }],
  ])("sends %s %s", async (method, path, call, body) => {
    const { fetch, sent } = fakeFetch(json({}));
    await call(new InferenceServerClient("host:8000", { fetch }));
    expect(sent).toHaveLength(1);
    expect([sent[0]!.method, sent[0]!.url]).toEqual([method, `http://host:8000/${path}`]);
    if (body !== undefined) expect(JSON.parse(sent[0]!.body)).toEqual(body);
  });

  it("sends headers, the access token and a query", async () => {
    const { fetch, sent } = fakeFetch(json({}));
    const headers = { "X-A": "client", "x-b": "client" };
    const client = new InferenceServerClient("host:1", { fetch, headers, accessToken: "secret" });
    await client.getServerMetadata({ headers: { "x-a": "call" }, query: { q: "a b" } });
    const [{ url, headers: got } = sent[0]!] = sent;
    expect(url).toBe("http://host:1/v2?q=a+b");
    expect(Object.fromEntries(got)).toMatchObject({
      "x-a": "call",
      "x-b": "client",
      "triton-access-token": "secret",
      "accept-encoding": "identity",
    });
  });

  it.each(["", ".", "..", "\ud800"])("rejects the model name %j", async (name) => {
    const { fetch, sent } = fakeFetch(json({}));
    const client = new InferenceServerClient("host:1", { fetch });
    expect(() => client.getModelMetadata(name)).toThrow(/invalid model name/);
    await expect(client.infer(name, { inputs: {} })).rejects.toMatchObject({ code: "INVALID_ARG" });
    expect(sent).toHaveLength(0);
  });

  it("rejects invalid headers", async () => {
    const client = new InferenceServerClient("host:1", { headers: { "x-a": "a\nb" } });
    await expect(client.getServerMetadata()).rejects.toMatchObject({ code: "INVALID_ARG" });
  });
});

describe("a server url", () => {
  it.each([
    ["localhost", "http://localhost:8000/"],
    ["localhost:80", "http://localhost/"],
    ["[::1]:8000", "http://[::1]:8000/"],
    ["http://localhost", "http://localhost/"],
    ["https://example.org/triton/", "https://example.org/triton/"],
  ])("may be %s", async (address, expected) => {
    const { fetch, sent } = fakeFetch(json({}));
    await new InferenceServerClient(address, { fetch }).getServerMetadata();
    expect(sent[0]!.url).toBe(`${expected}v2`);
  });

  it.each(["grpc://localhost:8001", "", "http://", "http://user:secret@localhost"])(
    "may not be %j",
    (address) => {
      let error: unknown;
      try {
        new InferenceServerClient(address);
      } catch (thrown) {
        error = thrown;
      }
      expect(TritonError.is(error) && error.code).toBe("INVALID_ARG");
      expect((error as Error).message).not.toContain("secret");
    },
  );
});

describe("a real server", () => {
  it("answers health, metadata and configuration calls", async () => {
    const client = new InferenceServerClient(await serve((triton) => bindIdentity(triton, "m", "FP32", [2])));
    expect(await client.isServerLive()).toBe(true);
    expect(await client.isServerReady()).toBe(true);
    expect(await client.isModelReady("m", { modelVersion: 1 })).toBe(true);
    expect(await client.isModelReady("none")).toBe(false);
    expect((await client.getServerMetadata()).name).toBe("triton");
    expect((await client.getModelMetadata("m")).inputs).toEqual([
      { name: "IN", datatype: "FP32", shape: [2] },
    ]);
    expect(await client.getModelConfig("m")).toMatchObject({ name: "m", max_batch_size: 0 });
    await client.infer("m", { inputs: { IN: Float32Array.of(1, 2) } });
    const { model_stats } = await client.getInferenceStatistics("m");
    expect(model_stats[0]).toMatchObject({ name: "m", version: "1", inference_count: 1 });
    expect(await client.getModelRepositoryIndex()).toMatchObject([
      { name: "m", version: "1", state: "READY" },
    ]);
    expect(await client.getLogSettings()).toHaveProperty("log_verbose_level");
  });

  it("requires its access token", async () => {
    const restrictions = { metadata: { header: "triton-access-token", value: "secret" } };
    const url = await serve((triton) => bindIdentity(triton, "m", "FP32", [2]), { restrictions } as object);
    await expect(new InferenceServerClient(url).getServerMetadata()).rejects.toMatchObject({
      code: "UNAVAILABLE",
      message: "This API is restricted, expecting header 'triton-access-token'",
    });
    const allowed = new InferenceServerClient(url, { accessToken: "secret" });
    expect(await allowed.getServerMetadata()).toMatchObject({ name: "triton" });
  });
});
