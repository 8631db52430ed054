import { DecoupledModelClient, ModelClient as GrpcClient } from "@tritonjs/client/grpc";
import { ModelClient as HttpClient } from "@tritonjs/client/http";
import {
  BFloat16Bits,
  batch,
  constantPadder,
  Float16Bits,
  firstValue,
  groupByValues,
  type TensorSpec,
  Triton,
} from "@tritonjs/core";
import { WebTriton } from "@tritonjs/core/web";
import { arrayDatatype } from "@tritonjs/protocol";
import ndarray, { type NdArray } from "ndarray";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { outcomeOf } from "../support/outcome.js";
import { callbacks } from "./fixtures/half-callbacks.mjs";

/* FP16 and BF16 in callbacks and in results: `get` and lists are of numbers, and `data` tells what it holds. */

const halves = { FP16: Float16Bits, BF16: BFloat16Bits } as const;
type Half = keyof typeof halves;
const hasFloat16Array = "Float16Array" in globalThis;
/** Name of the class of `data`. */
const className = (dtype: Half) =>
  dtype === "FP16" && hasFloat16Array ? "Float16Array" : halves[dtype].name;

/** Two numbers that callers send, as the callback gets them, and twice of them as callers get them. */
const values: Readonly<Record<Half, readonly (readonly [number[], number[], number[]])[]>> = {
  FP16: [
    [[1, 2.5], [1, 2.5], [2, 5]],
    [[65_504, -0], [65_504, -0], [Infinity, -0]],
    [[NaN, -Infinity], [NaN, -Infinity], [NaN, -Infinity]],
    [[2 ** -24, 0.1], [2 ** -24, 0.0999755859375], [2 ** -23, 0.199951171875]],
    [[65_520, 2 ** -26], [Infinity, 0], [Infinity, 0]],
  ], // biome-ignore format: rows
  BF16: [
    [[1, 2.5], [1, 2.5], [2, 5]],
    [[3.3895313892515355e38, -0], [3.3895313892515355e38, -0], [Infinity, -0]],
    [[NaN, -Infinity], [NaN, -Infinity], [NaN, -Infinity]],
    [[2 ** -133, 0.1], [2 ** -133, 0.10009765625], [2 ** -132, 0.2001953125]],
    [[65_504, 2 ** -135], [65_536, 0], [131_072, 0]],
  ], // biome-ignore format: rows
};

interface Answer {
  readonly y: NdArray<Float16Bits> & { toArray(): unknown };
  readonly seen: { text(): string };
}
/** A handle or a client of a model. */
interface Inferring {
  inferSample(inputs: { x: unknown }): Promise<Answer> | AsyncIterable<Answer>;
  stream?(inputs: { x: unknown }): AsyncIterable<Answer>;
}

/** The only response of a model, be it decoupled or not. */
async function call(model: Inferring, x: unknown, isStream: boolean): Promise<Answer> {
  if (!isStream) return model.inferSample({ x }) as Promise<Answer>;
  const answers = model.stream?.({ x: [x] }) ?? (model.inferSample({ x }) as AsyncIterable<Answer>);
  for await (const answer of answers) return answer;
  throw new Error("expected a response");
}

const x = (dtype: Half) => [{ name: "x", dtype, shape: [2] }] as const;
const outputs = (dtype: Half) =>
  [
    { name: "y", dtype, shape: [2] },
    { name: "seen", dtype: "BYTES", shape: [1] },
  ] as const satisfies readonly TensorSpec[];

/** Binds the models of the table, and returns their handles by name. */
function bindAll(server: Triton | WebTriton, styles: Readonly<Record<string, unknown>>) {
  const handles = new Map<string, Inferring>();
  for (const dtype of ["FP16", "BF16"] as const) {
    for (const [style, inferFunc] of Object.entries(styles)) {
      const modelName = `${style}_${dtype}`;
      const handle = (server as Triton).bind({
        modelName,
        inputs: x(dtype),
        outputs: outputs(dtype),
        inferFunc: inferFunc as never,
        config: { maxBatchSize: style === "sample" ? 0 : 4, decoupled: style === "generator" },
      });
      handles.set(modelName, handle as unknown as Inferring);
    }
  }
  return (modelName: string) => handles.get(modelName)!;
}

const logger = { error() {}, warn() {}, info() {}, debug() {} };
const triton = new Triton({ httpPort: 0, grpcPort: 0, metricsPort: 0, logger });
const web = new WebTriton({ logger });
const opens: Partial<Record<string, (model: string) => Inferring>> = {};
const clients: { close(): unknown }[] = [];

beforeAll(async () => {
  const worker = new URL("./fixtures/half-callbacks.mjs", import.meta.url);
  opens["in process"] = bindAll(triton, { ...callbacks, worker });
  opens["web core"] = bindAll(web, callbacks);
  const { addresses } = await triton.serve();
  const client = (open: (model: string) => Inferring & { close(): unknown }) => (model: string) => {
    const opened = open(model);
    clients.push(opened);
    return opened;
  };
  opens.HTTP = client((model) => new HttpClient(addresses.http!.url, model) as never);
  opens.gRPC = client((model) =>
    model.startsWith("generator")
      ? (new DecoupledModelClient(addresses.grpc!.url, model) as never)
      : (new GrpcClient(addresses.grpc!.url, model) as never),
  );
});
afterAll(async () => {
  for (const client of clients) await client.close();
  await Promise.all([triton.close(), web.close()]);
});

const text = (number: number) => (Object.is(number, -0) ? "-0" : String(number));

const table = (["FP16", "BF16"] as const).flatMap((dtype) =>
  ["batch", "sample", "requests", "generator", "worker"].flatMap((style) =>
    ["in process", "HTTP", "gRPC", "web core"]
      // The web core has no worker threads, and JSON streams have no form of 16-bit floats.
      .filter((way) => !(style === "worker" && way === "web core"))
      .filter((way) => !(style === "generator" && way === "HTTP"))
      .map((way) => [dtype, style, way] as const),
  ),
);

describe.each(table)("%s in a callback of style %s, called %s", (dtype, style, way) => {
  it("is numbers for the callback and for the caller", async () => {
    const model = opens[way]!(`${style}_${dtype}`);
    for (const [sent, got, twice] of values[dtype]) {
      const { y, seen } = await call(model, sent, style === "generator");
      const numbers = got.map(text);
      const expected = { get: numbers, data: numbers, list: numbers, class: className(dtype) };
      expect(JSON.parse(seen.text())).toEqual(expected);
      const last = y.shape.map((dim) => dim - 1);
      expect([y.get(...y.shape.map(() => 0)), y.get(...last)]).toEqual(twice);
      expect(y.data.toFloat32()).toEqual(Float32Array.from(twice));
      expect([y.toArray()].flat(2)).toEqual(twice);
      expect(Object.prototype.toString.call(y.data)).toBe(`[object ${className(dtype)}]`);
      expect(arrayDatatype(y)).toBe(dtype);
    }
  });
});

/** Values that a callback may return for `[[1, -2.5]]`, and others. */
const returned: Readonly<Record<string, (x: Seen, dtype: Half) => unknown>> = {
  numbers: () => [[1, -2.5]],
  "a Float32Array": () => Float32Array.of(1, -2.5),
  "rows of Float32Array": () => [Float32Array.of(1, -2.5)],
  "an ndarray of a Float32Array": () => ndarray(Float32Array.of(-2.5, 1), [1, 2]).step(1, -1),
  "an ndarray of numbers": () => ndarray([1, -2.5], [1, 2]),
  "the input": (x) => x,
  "the data of the input": (x) => x.data,
  "a copy of the data": (x) => x.data.slice(),
  "rows of the data": (x) => [x.data.subarray(0)],
  "an ndarray of the data": (x) => ndarray(x.data, [1, 2]),
  "a view of the input": (x) => x.transpose(1, 0).transpose(1, 0).step(1, -1).step(1, -1),
  "numbers that are set in the input": (x) => {
    x.set(0, 0, 7);
    x.set(0, 0, 1);
    return x;
  },
  bits: (_, dtype) => new halves[dtype](dtype === "FP16" ? [0x3c00, 0xc100] : [0x3f80, 0xc020]),
  "a Float16Array": (_, dtype) =>
    dtype === "FP16" && hasFloat16Array
      ? new (globalThis as unknown as { Float16Array: Float32ArrayConstructor }).Float16Array([1, -2.5])
      : [[1, -2.5]],
};

type Seen = NdArray<Float16Bits>;

/** Values that do not tell that they are of the data type, with the class in the error. */
const refused: Readonly<Record<string, (x: Seen, dtype: Half) => unknown>> = {
  Uint16Array: () => Uint16Array.of(1, 2),
  Int16Array: () => Int16Array.of(1, 2),
  Float64Array: () => ndarray(Float64Array.of(1, 2), [1, 2]),
  BFloat16Bits: (_, dtype) => (dtype === "FP16" ? new BFloat16Bits(2) : undefined),
  Float16Bits: (_, dtype) => (dtype === "BF16" ? new Float16Bits(2) : undefined),
};

describe.each(["FP16", "BF16"] as const)("%s", (dtype) => {
  const bindReturning = (modelName: string, make: (x: Seen, dtype: Half) => unknown) =>
    triton.bind({
      modelName: `${modelName.replaceAll(" ", "-")}-as-${dtype}`,
      inputs: x(dtype),
      outputs: [{ name: "y", dtype, shape: [2] }],
      inferFunc: batch(({ x }) => ({ y: make(x as never, dtype) as never })),
    });

  it.each(Object.entries(returned))("may be returned as %s", async (name, make) => {
    const { y } = await bindReturning(name, make).infer({ x: [[1, -2.5]] });
    expect(y.toArray()).toEqual([[1, -2.5]]);
  });

  it.each(Object.entries(refused))("is not taken from a %s", async (name, make) => {
    if (make({} as never, dtype) === undefined) return;
    const model = bindReturning(name, make);
    const expected = `(${dtype}): expected numbers, Float32Array or ${halves[dtype].name}, got ${name}`;
    await expect(model.infer({ x: [[1, -2.5]] })).rejects.toThrow(`'y' ${expected}`);
    const given = make({} as never, dtype) as never;
    await expect(model.infer({ x: given })).rejects.toThrow(`'x' of model '${model.name}' ${expected}`);
  });

  it("is not what map() makes of bits, and is what it makes of a Float16Array", async () => {
    const { infer } = bindReturning("map", (x) => x.data.map((element) => element * 2));
    const outcome = outcomeOf(infer({ x: [[1, -2.5]] }));
    if (className(dtype) === "Float16Array") expect(await outcome).toBe("done");
    else expect(await outcome).toContain("got Uint16Array");
  });

  it("is numbers for decorators that split, group and pad rows", async () => {
    const model = triton.bind({
      modelName: `decorated_${dtype}`,
      inputs: [...x(dtype), { name: "scale", dtype, shape: [1] }] as const,
      outputs: [{ name: "y", dtype, shape: [-1] }],
      inferFunc: batch(
        groupByValues("scale", { padFn: constantPadder(0.5) })(
          firstValue("scale")(({ x, scale }) => ({
            y: (scale as number) > 1 ? x.hi(x.shape[0]!, 1) : x,
          })),
        ),
      ),
    });
    const { y } = await model.infer({ x: [[1, 2], [3, 4], [5, 6]], scale: [[1], [1.5], [1]] }); // biome-ignore format: rows
    expect(y.toArray()).toEqual([[1, 2], [3, 0.5], [5, 6]]); // biome-ignore format: rows
  });

  it("of a result is taken by another model and by both clients", async () => {
    const name = `batch_${dtype}`;
    const { y } = await call(opens["in process"]!(name), [1, -2.5], false);
    for (const way of ["in process", "HTTP", "gRPC", "web core"]) {
      for (const value of [y, y.data, ndarray(y.data, [2])]) {
        const again = await call(opens[way]!(name), value, false);
        expect([again.y.toArray()].flat(2)).toEqual([4, -10]);
      }
    }
  });
});
