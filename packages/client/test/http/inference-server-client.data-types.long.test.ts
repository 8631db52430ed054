import type { DataType, Tensor } from "@tritonjs/core";
import { float32ToBfloat16, float32ToFloat16, isHalfArray } from "@tritonjs/protocol";
import ndarray from "ndarray";
import { describe, expect, it } from "vitest";
import { InferenceServerClient } from "../../src/http/index.js";
import { bindIdentity, serve } from "./support/serve.js";

type Elements = Tensor["elements"];

const text = (value: string) => new TextEncoder().encode(value);

const samples: Record<DataType, Elements> = {
  BOOL: Uint8Array.of(1, 0, 1, 1, 0, 0),
  UINT8: Uint8Array.of(0, 1, 127, 128, 254, 255),
  UINT16: Uint16Array.of(0, 1, 2, 32_768, 65_534, 65_535),
  UINT32: Uint32Array.of(0, 1, 2, 2 ** 31, 2 ** 32 - 2, 2 ** 32 - 1),
  UINT64: BigUint64Array.of(0n, 1n, 2n ** 53n, 2n ** 53n + 1n, 2n ** 63n, 2n ** 64n - 1n),
  INT8: Int8Array.of(-128, -1, 0, 1, 2, 127),
  INT16: Int16Array.of(-32_768, -1, 0, 1, 2, 32_767),
  INT32: Int32Array.of(-(2 ** 31), -1, 0, 1, 2, 2 ** 31 - 1),
  INT64: BigInt64Array.of(-(2n ** 63n), -(2n ** 53n) - 1n, 0n, 1n, 2n ** 53n + 1n, 2n ** 63n - 1n),
  FP16: float32ToFloat16([0, -0, 1.5, -65_504, Number.POSITIVE_INFINITY, Number.NaN]),
  BF16: float32ToBfloat16([0, -0, 1.5, -3e38, Number.NEGATIVE_INFINITY, Number.NaN]),
  FP32: Float32Array.of(0, -0, 0.1, -3.4e38, Number.POSITIVE_INFINITY, Number.NaN),
  FP64: Float64Array.of(0.1, -0, 1e-308, -1.7e308, Number.NEGATIVE_INFINITY, Number.NaN),
  BYTES: [text(""), text("a"), text("ä€😀"), text('"\\\n'), text("0"), text("\u0001")],
};

/** Elements as a tensor has them: FP16 and BF16 are any bits there. */
const wired = (elements: Elements) => (isHalfArray(elements) ? new Uint16Array(elements) : elements);

const datatypes = Object.keys(samples) as DataType[];
const inJson = datatypes.filter((datatype) => datatype !== "FP16" && datatype !== "BF16");

async function identity(datatype: DataType, shape: number[]): Promise<InferenceServerClient> {
  return new InferenceServerClient(await serve((triton) => bindIdentity(triton, "m", datatype, shape)));
}

describe.each(datatypes)("a %s tensor in binary", (datatype) => {
  it("goes out and comes back unchanged", async () => {
    const client = await identity(datatype, [2, 3]);
    const inputs = { IN: { datatype, shape: [2, 3], data: samples[datatype] } };
    const result = await client.infer("m", { inputs });
    expect(result.tensor("OUT", datatype).shape).toEqual([2, 3]);
    expect(result.tensor("OUT").elements).toEqual(wired(samples[datatype]));
    expect(result.outputs.OUT!.shape).toEqual([2, 3]);
    expect(result.response.headers.get("content-type")).toBe("application/octet-stream");
  });

  it("may have no elements", async () => {
    const client = await identity(datatype, [-1, 3]);
    const data = datatype === "BYTES" ? [] : samples[datatype].slice(0, 0);
    const inputs = { IN: { datatype, shape: [0, 3], data } };
    const result = await client.infer("m", { inputs });
    expect(result.tensor("OUT").shape).toEqual([0, 3]);
    expect(result.elements("OUT")).toHaveLength(0);
  });
});

describe.each(inJson)("a %s tensor in JSON", (datatype) => {
  it("goes out and comes back unchanged", async () => {
    const client = await identity(datatype, [2, 3]);
    const inputs = { IN: { datatype, shape: [2, 3], data: samples[datatype] } };
    const result = await client.infer("m", { inputs, binary: false });
    expect(result.response.headers.get("content-type")).toBe("application/json");
    expect(result.tensor("OUT").shape).toEqual([2, 3]);
    expect(result.elements("OUT")).toEqual(samples[datatype]);
  });

  it("may go one way in binary and the other way as JSON", async () => {
    const client = await identity(datatype, [6]);
    for (const binary of [true, false]) {
      const result = await client.infer("m", {
        inputs: { IN: { datatype, data: samples[datatype], binary } },
        outputs: [{ name: "OUT", binary: !binary }],
      });
      expect(result.elements("OUT")).toEqual(samples[datatype]);
    }
  });
});

it("an inference keeps the bits of every NaN", async () => {
  const client = await identity("FP32", [-1]);
  const bits = Uint32Array.of(0x7fc0_0001, 0xff80_0001, 0x7f81_2345);
  const result = await client.infer("m", { inputs: { IN: new Float32Array(bits.buffer) } });
  expect(result.tensor("OUT").bytes).toEqual(new Uint8Array(bits.buffer));
});

it("an inference keeps bytes that are not text", async () => {
  const client = await identity("BYTES", [-1]);
  const data = [Uint8Array.of(0xff, 0, 0xfe), Uint8Array.of(0)];
  const result = await client.infer("m", { inputs: { IN: { datatype: "BYTES", data } } });
  expect(result.elements("OUT", "BYTES")).toEqual(data);
});

it("an inference converts numbers to FP16 and BF16 and back", async () => {
  const halves = await (await identity("FP16", [2])).infer("m", {
    inputs: { IN: { datatype: "FP16", data: [0.5, -2] } },
  });
  expect(halves.elements("OUT", "FP16").toFloat32()).toEqual(Float32Array.of(0.5, -2));
  const brains = await (await identity("BF16", [2])).infer("m", {
    inputs: { IN: { datatype: "BF16", data: [0.5, -2] } },
  });
  expect(brains.elements("OUT", "BF16").toFloat32()).toEqual(Float32Array.of(0.5, -2));
});

it("an inference takes the shape of ndarrays, including transposed ones", async () => {
  const client = await identity("INT32", [-1, -1]);
  const turned = ndarray(Int32Array.of(1, 2, 3, 4, 5, 6), [2, 3]).transpose(1, 0);
  const result = await client.infer("m", { inputs: { IN: turned } });
  expect(result.array("OUT", "INT32").shape).toEqual([3, 2]);
  expect([...result.elements("OUT", "INT32")]).toEqual([1, 4, 2, 5, 3, 6]);
});

it("text outputs are read as strings", async () => {
  const client = await identity("BYTES", [-1]);
  const result = await client.infer("m", { inputs: { IN: ["ä", "😀"] } });
  expect(result.strings("OUT")).toEqual(["ä", "😀"]);
});

it("an inference sends id, version and parameters", async () => {
  const client = await identity("INT32", [1]);
  const result = await client.infer("m", {
    inputs: { IN: Int32Array.of(7) },
    id: "id \u2028 ä",
    modelVersion: 1,
  });
  expect([result.id, result.modelName, result.modelVersion]).toEqual(["id \u2028 ä", "m", "1"]);
});

it("inputs are read at the time of the call", async () => {
  const client = await identity("INT32", [1]);
  const data = Int32Array.of(7);
  const pending = client.infer("m", { inputs: { IN: data }, requestCompression: "gzip" });
  data[0] = 8;
  expect([...(await pending).elements("OUT", "INT32")]).toEqual([7]);
});

it.each(["gzip", "deflate"] as const)(
  "an inference compresses request and response with %s",
  async (compression) => {
    const client = await identity("FP32", [-1]);
    const data = Float32Array.from({ length: 10_000 }, (_, i) => i % 7);
    for (const binary of [true, false]) {
      const result = await client.infer("m", {
        inputs: { IN: data },
        binary,
        requestCompression: compression,
        responseCompression: compression,
      });
      expect(result.response.headers.get("content-encoding")).toBe(compression);
      expect(result.elements("OUT")).toEqual(data);
    }
  },
);

it("the client does not request compression by default", async () => {
  const client = await identity("INT32", [1]);
  const result = await client.infer("m", { inputs: { IN: Int32Array.of(7) } });
  expect(result.response.headers.get("content-encoding")).toBeNull();
});
