import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import type { ModelDescription } from "@tritonjs/core/backend";
import {
  assertJsonFits,
  type DataType,
  type DescribedTensor,
  errorFor,
  MOST_TENSORS,
  type TensorSpec,
  TritonError,
} from "@tritonjs/protocol";

interface WeightSpec {
  readonly name: string;
  readonly shape: readonly number[];
  readonly dtype: string;
  readonly quantization?: { readonly dtype: string };
}

/** Files of weights, and the weights in them one after the other. */
interface WeightsGroup {
  readonly paths: readonly string[];
  readonly weights: readonly WeightSpec[];
}

interface SignatureTensor {
  /** Name of the node: `x:0`. */
  readonly name: string;
  readonly dtype?: string | number;
  readonly tensorShape?: {
    readonly dim?: readonly { readonly size?: string | number }[];
    readonly unknownRank?: boolean;
  };
}

/** The model's tensors by the names that clients use. */
export interface Signature {
  readonly inputs?: Readonly<Record<string, SignatureTensor>>;
  readonly outputs?: Readonly<Record<string, SignatureTensor>>;
}

export interface ModelJson {
  readonly path: string;
  readonly kind: "graph" | "layers";
  readonly weightsManifest: readonly WeightsGroup[];
  readonly signature: Signature;
  readonly content: Readonly<Record<string, unknown>>;
}

/**
 * Reads a `model.json`.
 *
 * @throws TritonError NOT_FOUND for a missing file, INVALID_ARG for a file that is not a model.
 */
export function readModelJson(path: string): ModelJson {
  const content = parse(path);
  const topology = content.modelTopology as Record<string, unknown> | undefined;
  if (typeof topology !== "object" || topology === null) {
    throw errorFor("INVALID_MODEL", `'${path}' is not a TensorFlow.js model: it has no modelTopology`);
  }
  const { format, weightsManifest = [], signature, userDefinedMetadata } = content;
  const isGraph = format === "graph-model" || (format === undefined && "node" in topology);
  return {
    path,
    kind: isGraph ? "graph" : "layers",
    weightsManifest: weightsManifest as WeightsGroup[],
    signature: (signature ??
      (userDefinedMetadata as { signature?: Signature })?.signature ??
      {}) as Signature,
    content,
  };
}

function parse(path: string): Record<string, unknown> {
  let text: string;
  try {
    text = readFileSync(path, "utf8");
  } catch (cause) {
    const { message } = TritonError.from(cause);
    const text = `cannot open the TensorFlow.js model '${path}': ${message}`;
    throw errorFor("MODEL_FILES_NOT_FOUND", text, { cause });
  }
  assertJsonFits(text, `the TensorFlow.js model '${path}'`);
  try {
    const content: unknown = JSON.parse(text);
    if (typeof content === "object" && content !== null) return content as Record<string, unknown>;
  } catch (cause) {
    const { message } = TritonError.from(cause);
    throw errorFor("INVALID_MODEL", `cannot read the TensorFlow.js model '${path}': ${message}`, { cause });
  }
  throw errorFor("INVALID_MODEL", `'${path}' is not a TensorFlow.js model: it is not a JSON object`);
}

/** Paths of the files of weights, in the order of their bytes. */
export function weightFiles({ path, weightsManifest }: ModelJson): string[] {
  return weightsManifest.flatMap(({ paths }) => paths.map((file) => join(dirname(path), file)));
}

/** Bytes of all weights; undefined if some are strings, whose size is unknown. */
export function weightBytes({ weightsManifest }: ModelJson): number | undefined {
  let total = 0;
  for (const { weights } of weightsManifest) {
    for (const { shape, dtype, quantization } of weights) {
      const size = BYTES[quantization?.dtype ?? dtype];
      if (size === undefined) return undefined;
      total += size * shape.reduce((count, dim) => count * dim, 1);
    }
  }
  return total;
}

const BYTES: Readonly<Record<string, number>> = {
  float32: 4,
  int32: 4,
  bool: 1,
  uint8: 1,
  uint16: 2,
  float16: 2,
  complex64: 8,
};

/** TensorFlow's data types: names in signatures, and numbers, which some files have instead. */
const TYPES: readonly (readonly [name: string, number: number, datatype: DataType])[] = [
  ["DT_FLOAT", 1, "FP32"],
  ["DT_DOUBLE", 2, "FP64"],
  ["DT_INT32", 3, "INT32"],
  ["DT_UINT8", 4, "UINT8"],
  ["DT_INT16", 5, "INT16"],
  ["DT_INT8", 6, "INT8"],
  ["DT_STRING", 7, "BYTES"],
  ["DT_INT64", 9, "INT64"],
  ["DT_BOOL", 10, "BOOL"],
  ["DT_BFLOAT16", 14, "BF16"],
  ["DT_UINT16", 17, "UINT16"],
  ["DT_HALF", 19, "FP16"],
  ["DT_UINT32", 22, "UINT32"],
  ["DT_UINT64", 23, "UINT64"],
];

const DATA_TYPES: ReadonlyMap<string | number | undefined, DataType> = new Map<string | number, DataType>([
  ...TYPES.map(([name, , datatype]) => [name, datatype] as const),
  ...TYPES.map(([, number, datatype]) => [number, datatype] as const),
  // Names in TensorFlow.js.
  ["float32", "FP32"],
  ["int32", "INT32"],
  ["bool", "BOOL"],
  ["string", "BYTES"],
]);

/** @throws TritonError UNSUPPORTED for a type that the protocol does not have */
export function tensorDataType(type: string | number | undefined): DataType {
  const found = DATA_TYPES.get(type);
  if (found !== undefined) return found;
  throw errorFor("MODEL_NOT_SUPPORTED", `the protocol cannot carry TensorFlow's type ${type}`);
}

/** The fields of a graph's node that are read. */
interface GraphNode {
  readonly name: string;
  readonly op: string;
  /** Nodes whose results it takes: `x`, `x:1`; `^x` for a node that only runs before it. */
  readonly input?: readonly string[];
  readonly attr?: Readonly<Record<string, { readonly type?: string | number } | undefined>> & {
    readonly shape?: { readonly shape?: SignatureTensor["tensorShape"] };
  };
}

/**
 * The tensors of a GraphModel, from its signature. A model without a signature gives its placeholders, and as outputs
 * the nodes that no other node takes, with an unknown rank.
 *
 * @throws TritonError UNSUPPORTED for tensors that the protocol cannot have
 */
export function graphDescription({ path, signature, content }: ModelJson): ModelDescription {
  const { inputs: named = {}, outputs = {} } = signature;
  const inputs = Object.entries(named).map(([name, { dtype, tensorShape }]) =>
    toSpec(path, name, dtype, tensorShape),
  );
  const specs = (): DescribedTensor[] =>
    Object.entries(outputs).map(([name, { dtype, tensorShape }]) =>
      tensorShape?.unknownRank
        ? { name, dtype: tensorDataType(dtype), shape: [], rankUnknown: true }
        : toSpec(path, name, dtype, tensorShape),
    );
  if (inputs.length > 0) return bounded(path, { inputs, outputs: specs() });
  const { node: nodes = [] } = content.modelTopology as { node?: readonly GraphNode[] };
  const described = describeNodes(path, nodes, lastNodes(nodes));
  return signature.outputs === undefined ? described : bounded(path, { ...described, outputs: specs() });
}

/** @throws TritonError INVALID_ARG for more tensors than a model may have */
function bounded(path: string, description: ModelDescription): ModelDescription {
  const most = Math.max(description.inputs.length, description.outputs.length);
  if (most <= MOST_TENSORS) return description;
  const text = `cannot read the TensorFlow model '${path}': expected at most ${MOST_TENSORS} inputs, and outputs, got ${most}`;
  throw errorFor("INVALID_MODEL", text);
}

/** Describes the placeholders of a graph, and some of its nodes as outputs of an unknown rank. */
export function describeNodes(
  path: string,
  nodes: readonly GraphNode[],
  outputs: readonly string[],
): ModelDescription {
  const wanted = new Set(outputs);
  return bounded(path, {
    inputs: nodes
      .filter(({ op }) => op === "Placeholder")
      .map(({ name, attr }) => toSpec(path, name, attr?.dtype?.type, attr?.shape?.shape)),
    outputs: nodes.filter(({ name }) => wanted.has(name)).map(untypedOutput),
  });
}

/** Operations whose result is BOOL. Their attribute `T` is the type of what they take. */
const TRUTHS = /^(?:Greater|Less)(?:Equal)?$|^(?:Not)?Equal$|^Logical|^Is(?:Nan|Inf|Finite)$/;

function untypedOutput({
  name,
  op,
  attr: { output_type, out_type, DstT, dtype, T } = {},
}: GraphNode): DescribedTensor {
  const type = TRUTHS.test(op) ? "DT_BOOL" : (output_type ?? out_type ?? DstT ?? dtype ?? T)?.type;
  return { name, dtype: tensorDataType(type), shape: [], rankUnknown: true };
}

/** Names of the nodes that have a result which no other node takes. */
export function lastNodes(nodes: readonly GraphNode[]): string[] {
  const taken = new Set(
    nodes.flatMap(({ input = [] }) => input.map((name) => name.replace(/^\^|:\d+$/g, ""))),
  );
  return nodes
    .filter(({ name, op }) => !taken.has(name) && !/^(?:Placeholder|Const|NoOp|Assert)$/.test(op))
    .map(({ name }) => name);
}

function toSpec(
  path: string,
  name: string,
  type: string | number | undefined,
  shape: SignatureTensor["tensorShape"],
): TensorSpec {
  if (shape === undefined || shape.unknownRank) {
    const text = `cannot serve the TensorFlow model '${path}': the rank of '${name}' is unknown`;
    throw errorFor("MODEL_NOT_SUPPORTED", text);
  }
  const dims = (shape.dim ?? []).map(({ size }) => Number(size));
  return { name, dtype: tensorDataType(type), shape: dims.map((dim) => (dim > 0 ? dim : -1)) };
}
