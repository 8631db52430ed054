import { Float16Bits, Tensor } from "@tritonjs/core";
import ndarray from "ndarray";
import { expectThat, type FuzzTarget, refusalOf } from "../engine/target.js";
import { text } from "../structures/text.js";
import { openIdentityModels, V2_TOKENS } from "../support/identity-models.js";

/** A call as an input writes it. Objects with one member `$name` stand for values that JSON does not have. */
interface Call {
  readonly model?: unknown;
  readonly way?: unknown;
  readonly inputs?: unknown;
  readonly options?: unknown;
}

const CALLS = [
  { model: "fp32", way: "infer", inputs: { IN: [1, 2.5, -3] } },
  {
    model: "fp32",
    way: "infer",
    inputs: { IN: { $f32: [1, 2] } },
    options: { id: "a", priority: 1, timeoutMs: 60000 },
  },
  { model: "int64", way: "inferSample", inputs: { IN: { $i64: ["1", "-9223372036854775808"] } } },
  { model: "bytes", way: "infer", inputs: { IN: ["a", { $u8: [1, 255] }] } },
  { model: "bool", way: "infer", inputs: { IN: [true, false, 1, 0] } },
  {
    model: "batched",
    way: "inferBatch",
    inputs: {
      IN: [
        [1, 2],
        [3, 4],
      ],
    },
  },
  { model: "batched", way: "infer", inputs: { IN: { $nd: [1, 2, 3, 4], shape: [2, 2] } } },
  {
    model: "fp16",
    way: "infer",
    inputs: { IN: { $tensor: "FP16", shape: [2], elements: { $u16: [15360, 0] } } },
  },
  { model: "fp16", way: "infer", inputs: { IN: { $f16: [15360, 64513] } } },
  {
    model: "sequence",
    way: "infer",
    inputs: { IN: [[1]] },
    options: { sequence: { id: 5, start: true, end: true } },
  },
  {
    model: "stream",
    way: "stream",
    inputs: { IN: [1, 2, 3] },
    options: { parameters: { a: 1, b: "c", d: true } },
  },
  {
    model: "pair",
    way: "infer",
    inputs: { text: ["x"], flag: { $undefined: 0 } },
    options: { queueTimeoutMicroseconds: 5 },
  },
  { model: "uint64", way: "infer", inputs: { IN: [{ $bigint: "18446744073709551615" }, 1] } },
];

/** Error of a value of the caller, which reaches the caller as it is. */
const OWN_FAULT = "a getter of the caller";

/** Calls in process with values of all kinds: each resolves, or rejects with one of the library's errors. */
export async function open(): Promise<FuzzTarget> {
  const { triton, handles } = await openIdentityModels();
  return {
    seeds: CALLS.map((call) => Buffer.from(JSON.stringify(call))),
    structure: text,
    lanes: 8,
    tokens: [
      ...V2_TOKENS,
      ...[
        "model",
        "way",
        "inputs",
        "options",
        "infer",
        "inferSample",
        "inferBatch",
        "stream",
        "fp32",
        "int8",
      ],
      ...[
        "$f32",
        "$f64",
        "$i64",
        "$u8",
        "$u16",
        "$nd",
        "$bigint",
        "$undefined",
        "$nan",
        "$function",
        "$symbol",
        "$date",
      ],
      ...[
        "$map",
        "$set",
        "$hole",
        "$tensor",
        "$proxy",
        "$buffer",
        "elements",
        "sequence",
        "start",
        "timeoutMs",
        "parameters",
      ],
    ],
    async run(input) {
      let call: Call;
      try {
        call = JSON.parse(Buffer.from(input).toString("utf8"), revive) as Call;
      } catch {
        return "not a call";
      }
      if (typeof call !== "object" || call === null) return "not a call";
      try {
        const handle = handles.get(String(call.model));
        if (handle === undefined) return "no model";
        const options = { ...(call.options as object | undefined) };
        if (call.way === "stream") {
          let count = 0;
          for await (const _ of handle.stream(call.inputs as never, options)) count++;
          return `${Math.min(4, count)} responses`;
        }
        const way = call.way === "inferSample" || call.way === "inferBatch" ? call.way : "infer";
        await handle[way](call.inputs as never, options);
        return "answered";
      } catch (error) {
        return (error as Error).message === OWN_FAULT ? "the caller's own error" : refusalOf(error);
      }
    },
    async check() {
      const answer = await handles.get("fp32")!.infer({ IN: [1, 2] } as never);
      const { OUT } = answer as unknown as { OUT: { readonly size: number; get(i: number): number } };
      expectThat(OUT.size === 2 && OUT.get(1) === 2, () => "another answer");
    },
    close: () => triton.close(),
  };
}

/** Makes the values that JSON does not have. Values that cannot be made stay as they are. */
function revive(_name: string, value: unknown): unknown {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return value;
  const [name] = Object.keys(value);
  const make = name === undefined ? undefined : VALUES[name];
  if (make === undefined) return value;
  try {
    return make((value as Record<string, unknown>)[name!], value as Record<string, unknown>);
  } catch {
    return value;
  }
}

type Make = (content: unknown, whole: Readonly<Record<string, unknown>>) => unknown;

const numbers = (content: unknown): number[] => (content as unknown[]).map(Number);

const VALUES: Readonly<Record<string, Make>> = {
  $f32: (content) => Float32Array.from(numbers(content)),
  $f64: (content) => Float64Array.from(numbers(content)),
  $u8: (content) => Uint8Array.from(numbers(content)),
  $u16: (content) => Uint16Array.from(numbers(content)),
  $f16: (content) => new Float16Bits(numbers(content)),
  $i64: (content) => BigInt64Array.from((content as unknown[]).map((one) => BigInt(one as string))),
  $bigint: (content) => BigInt(content as string),
  $nd: (content, { shape }) => ndarray(numbers(content), shape as number[]),
  $tensor: (dtype, { shape, elements }) =>
    Tensor.fromElements(dtype as never, shape as number[], elements as never),
  $buffer: (content) => new Uint8Array(numbers(content)).buffer,
  $undefined: () => undefined,
  $nan: () => Number.NaN,
  $function: () => () => 1,
  $symbol: () => Symbol("fuzz"),
  $date: () => new Date(0),
  $map: (content) => new Map([["IN", content]]),
  $set: (content) => new Set(content as unknown[]),
  $hole: (content) => {
    const list = [...(content as unknown[])];
    delete list[0];
    return list;
  },
  $proxy: () =>
    new Proxy(
      {},
      {
        get() {
          throw new Error(OWN_FAULT);
        },
      },
    ),
};
