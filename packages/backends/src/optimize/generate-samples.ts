import {
  type DescribedTensor,
  type Elements,
  errorFor,
  float32ToFloat16,
  Tensor,
  typedArrayFor,
} from "@tritonjs/protocol";
import { GraphEditor, intAttribute, isStandard } from "../onnx-graph/graph-editor.js";
import type { NodeMessage } from "../onnx-graph/onnx-messages.js";
import type { OnnxModel } from "../onnx-graph/onnx-model.js";
import type { Sample } from "./model-runner.js";

/** Options of {@link generateSamples}. */
export interface GenerateOptions {
  /** @default 16 */
  readonly count?: number;
  /** Rows of each sample, where the first dimension of all inputs is open. @default 1 */
  readonly rows?: number;
  /** Shapes with all dimensions, by the name of the input. */
  readonly shapes?: Readonly<Record<string, readonly number[]>>;
  /** Sizes of open dimensions by their names in the file. @default 8, or 0 for one whose name has `past` */
  readonly dimensions?: Readonly<Record<string, number>>;
  /** @default 0 */
  readonly seed?: number;
}

/** Size of a dimension that the file leaves open and nobody gives. Dimensions of one name have one size. */
const OPEN_SIZE = 8;

/**
 * Generates inputs of a model: reals of a normal distribution, and integers that the model can use. An input that looks
 * up rows of a table gets numbers of rows; masks, by their name, hide nothing; other integers are 0 or 1.
 *
 * @throws TritonError INVALID_ARG for inputs that cannot be generated, such as texts, and for shapes and dimensions that
 * the model does not have
 */
export function generateSamples(
  model: OnnxModel,
  inputs: readonly DescribedTensor[],
  { count = 16, rows = 1, shapes = {}, dimensions = {}, seed = 0 }: GenerateOptions = {},
): Sample[] {
  const names = inputs.map(({ name }) => name);
  checkNames(model, "shape", "an input", shapes, names);
  const named = names.flatMap((name) => dimensionsOf(model, name)).filter(Boolean);
  checkNames(model, "dimension", "a named dimension", dimensions, named);
  const random = randomNumbers(seed + 1);
  const bounds = new Map(inputs.map(({ name }) => [name, rowsLookedUp(model, name)]));
  return Array.from({ length: count }, () => {
    const entries = inputs.map((input): [string, Tensor] => {
      const shape = shapeOf(model, input, { rows, shapes, dimensions });
      const size = shape.reduce((product, dim) => product * dim, 1);
      const fixed = /mask/i.test(input.name) ? 1 : /len/i.test(input.name) ? OPEN_SIZE : undefined;
      const isWhole = !/^(FP|BF)/.test(input.dtype) && input.dtype !== "BYTES";
      const elements =
        fixed !== undefined && isWhole
          ? constantOf(model, input, size, fixed)
          : elementsOf(model, input, size, bounds.get(input.name) ?? 2, random);
      return [input.name, Tensor.fromElements(input.dtype, shape, elements)];
    });
    return new Map(entries);
  });
}

/** Names of an input's dimensions; empty for those without one. */
function dimensionsOf(model: OnnxModel, input: string): readonly string[] {
  const found = model.message.graph.input.find(({ name }) => name === input);
  return found?.type?.tensorType?.shape?.dim.map(({ dimParam = "" }) => dimParam) ?? [];
}

function checkNames(
  model: OnnxModel,
  option: string,
  expected: string,
  given: object,
  names: readonly string[],
): void {
  const other = Object.keys(given).find((name) => !names.includes(name));
  if (other === undefined) return;
  const known = [...new Set(names)].join(", ") || "none";
  const text = `${option} '${other}': expected ${expected} of the ONNX model ${model.label} (${known}), got '${other}'`;
  throw errorFor("INVALID_INPUT", text);
}

function shapeOf(
  model: OnnxModel,
  { name, shape, rankUnknown }: DescribedTensor,
  { rows, shapes, dimensions }: Required<Pick<GenerateOptions, "rows" | "shapes" | "dimensions">>,
): readonly number[] {
  const given = Object.hasOwn(shapes, name) ? shapes[name] : undefined;
  if (given !== undefined) {
    const fits =
      rankUnknown ||
      (given.length === shape.length && shape.every((dim, i) => dim === -1 || dim === given[i]));
    if (fits) return given;
    const text = `shape of input '${name}' of the ONNX model ${model.label}: expected [${shape}], got [${given}]`;
    throw errorFor("INVALID_INPUT", text);
  }
  if (rankUnknown) {
    const text = `input '${name}' of the ONNX model ${model.label}: expected a shape, because the file leaves its rank open, got none`;
    throw errorFor("INVALID_INPUT", text);
  }
  const named = dimensionsOf(model, name);
  return shape.map((dim, i) => {
    if (dim >= 0) return dim;
    const known = named[i] ?? "";
    if (Object.hasOwn(dimensions, known)) return dimensions[known]!;
    // A decoder begins without the keys and values of earlier tokens.
    return i === 0 ? rows : /past/i.test(known) ? 0 : OPEN_SIZE;
  });
}

/** Masks that hide nothing, and lengths of sequences, which are the size that open dimensions get. */
function constantOf(model: OnnxModel, input: DescribedTensor, count: number, value: number): Elements {
  const elements = elementsOf(model, input, count, 1, () => 0);
  const one = elements instanceof BigInt64Array || elements instanceof BigUint64Array ? BigInt(value) : value;
  return (elements as Int32Array).fill(one as number);
}

function elementsOf(
  model: OnnxModel,
  { name, dtype }: DescribedTensor,
  count: number,
  bound: number,
  random: () => number,
): Elements {
  if (dtype === "BYTES" || dtype === "BF16") {
    const text = `input '${name}' of the ONNX model ${model.label}: expected inputs to be given, because values of type ${dtype} are not generated`;
    throw errorFor("INVALID_INPUT", text);
  }
  const normal = () => Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
  if (dtype === "FP16") return float32ToFloat16(Float32Array.from({ length: count }, normal));
  const array = new (typedArrayFor(dtype))(count);
  const isReal = dtype === "FP32" || dtype === "FP64";
  for (let i = 0; i < count; i++) {
    const value = isReal ? normal() : Math.floor(random() * (dtype === "BOOL" ? 2 : bound));
    (array as { [index: number]: number | bigint })[i] =
      array instanceof BigInt64Array || array instanceof BigUint64Array ? BigInt(value) : value;
  }
  return array as Elements;
}

/** Rows of the smallest table that an input looks up, directly or through nodes that keep its values. */
function rowsLookedUp(model: OnnxModel, input: string): number | undefined {
  const editor = new GraphEditor(model, model.message.graph);
  const seen = new Set<string>();
  let least: number | undefined;
  const visit = (name: string) => {
    if (seen.has(name)) return;
    seen.add(name);
    for (const node of editor.consumers(name)) {
      const rows = tableOf(node, name, editor);
      if (rows !== undefined) least = Math.min(least ?? rows, rows);
      else if (isStandard(node) && KEEPS_VALUES.has(node.opType))
        for (const output of node.output) visit(output);
    }
  };
  visit(input);
  return least;
}

const KEEPS_VALUES: ReadonlySet<string> = new Set([
  "Cast",
  "Identity",
  "Reshape",
  "Squeeze",
  "Unsqueeze",
  "Flatten",
]);

function tableOf(node: NodeMessage, indices: string, editor: GraphEditor): number | undefined {
  if (node.opType !== "Gather" || node.input[1] !== indices) return undefined;
  const size = editor.constant(node.input[0])?.dims[intAttribute(node, "axis", 0)];
  return size === undefined ? undefined : Number(size);
}

/** Numbers from 0 to 1 that a seed decides (mulberry32). */
export function randomNumbers(seed: number): () => number {
  let state = seed | 0;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
