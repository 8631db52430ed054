import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { ModelDescription } from "@tritonjs/core/backend";
import { errorFor, fromBfloat16, fromFloat16, TritonError } from "@tritonjs/protocol";
import { type FlatGraph, type FlatNode, flatten, VARIABLES } from "./flat-graph.js";
import {
  decodeGraphMessage,
  type MetaGraphMessage,
  type SignatureMessage,
  type TfAttributeMessage,
  type TfGraphMessage,
  type TfTensorMessage,
} from "./graph-messages.js";
import { describeNodes, graphDescription, lastNodes, type ModelJson, type Signature } from "./model-json.js";
import { BlockReader, TensorBundle } from "./tensor-bundle.js";

/*
 * Reads a SavedModel or a frozen graph of TensorFlow, without TensorFlow, as the GraphModel that TensorFlow.js runs.
 */

/** A GraphModel in memory. */
export interface GraphModelFile {
  readonly json: ModelJson;
  readonly description: ModelDescription;
  readonly weightSpecs: readonly {
    readonly name: string;
    readonly shape: number[];
    readonly dtype: string;
  }[];
  readonly weightData: ArrayBuffer;
}

/**
 * Describes a SavedModel by its signature. Its weights are not read.
 *
 * @throws TritonError as {@link readSavedModel}
 */
export function describeSavedModel(directory: string, signature: string): ModelDescription {
  const found = openSignature(directory, signature);
  return graphDescription(modelJson(directory, signatureJson(found.signature), {}));
}

/**
 * Reads a SavedModel.
 *
 * @param directory the directory with `saved_model.pb`
 * @throws TritonError INVALID_ARG for a file that is cut or missing, or a signature that it does not have; UNSUPPORTED
 * for what only TensorFlow can run.
 */
export function readSavedModel(directory: string, signature: string): GraphModelFile {
  const { metaGraph, signature: definition, label } = openSignature(directory, signature);
  const graph = metaGraph.graphDef ?? {};
  const outputs = Object.entries(definition.outputs ?? {});
  const flat = flatten(
    graph,
    outputs.map(([, { name }]) => name),
    metaGraph.signatureDef?.[START]?.outputs?.[START]?.name ?? "",
    label,
  );
  const json = signatureJson(definition, flat.outputs);
  const variables = new Variables(directory, metaGraph);
  const file = graphModel(directory, json, flat, (node) => variables.read(node), label);
  return { ...file, description: graphDescription(file.json) };
}

/**
 * Reads a frozen graph. Its inputs are its placeholders.
 *
 * @param outputs nodes to return; by default those that no other node takes
 * @throws TritonError as {@link readSavedModel}
 */
export function readFrozenGraph(path: string, outputs?: readonly string[]): GraphModelFile {
  const label = `the frozen graph '${path}'`;
  const graph = decodeGraphMessage("Graph", readFile(path), label);
  const nodes = graph.node ?? [];
  if (nodes.length === 0) throw errorFor("INVALID_MODEL", `${label}: expected nodes, got none`);
  const names = outputs ?? lastNodes(nodes);
  const flat = flatten(graph, names, "", label);
  const signature: Signature = {
    outputs: Object.fromEntries(names.map((name, i) => [name, { name: flat.outputs[i]! }])),
  };
  const noVariable = (node: string): never => {
    throw errorFor(
      "INVALID_MODEL",
      `${label}: expected constants only, got the variable '${node}': freeze it first`,
    );
  };
  const file = graphModel(path, signature, flat, noVariable, label);
  return { ...file, description: describeNodes(path, nodes, names) };
}

/** Name of the signature with the node that starts the model, and of its output. */
const START = "__saved_model_init_op";

interface FoundSignature {
  readonly metaGraph: MetaGraphMessage;
  readonly signature: SignatureMessage;
  readonly label: string;
}

function openSignature(directory: string, name: string): FoundSignature {
  const label = `the SavedModel '${directory}'`;
  const { metaGraphs = [] } = decodeGraphMessage(
    "SavedModel",
    readFile(join(directory, "saved_model.pb")),
    label,
  );
  for (const metaGraph of metaGraphs) {
    const signature = metaGraph.signatureDef?.[name];
    if (signature !== undefined) return { metaGraph, signature, label };
  }
  const names = metaGraphs.flatMap(({ signatureDef }) => Object.keys(signatureDef ?? {}));
  const text = `unknown signature '${name}' of ${label}: expected one of [${names.join(", ")}]`;
  throw errorFor("INVALID_CONFIG", text);
}

function readFile(path: string): Uint8Array {
  try {
    return readFileSync(path);
  } catch (cause) {
    const text = `cannot open the TensorFlow model '${path}': ${TritonError.from(cause).message}`;
    throw errorFor("MODEL_FILES_NOT_FOUND", text, { cause });
  }
}

/** The signature as a GraphModel has it. `outputs` are the places of the outputs in the flat graph. */
function signatureJson(
  { inputs = {}, outputs = {} }: SignatureMessage,
  places?: readonly string[],
): Signature {
  return {
    inputs: { ...inputs },
    outputs: Object.fromEntries(
      Object.entries(outputs).map(([name, info], i) => [name, { ...info, name: places?.[i] ?? info.name }]),
    ),
  };
}

function modelJson(
  path: string,
  signature: Signature,
  modelTopology: object,
  modelInitializer?: object,
): ModelJson {
  const content = { format: "graph-model", modelTopology, signature, modelInitializer };
  return { path, kind: "graph", weightsManifest: [], signature, content };
}

/** The variables of a SavedModel, by the names of their nodes. */
class Variables {
  readonly #directory: string;
  readonly #metaGraph: MetaGraphMessage;
  #checkpoint: TensorBundle | undefined;
  #keys: ReadonlyMap<string, string> | undefined;

  constructor(directory: string, metaGraph: MetaGraphMessage) {
    this.#directory = directory;
    this.#metaGraph = metaGraph;
  }

  read(node: string): TfTensorMessage {
    this.#checkpoint ??= this.#open();
    this.#keys ??= this.#readKeys(this.#checkpoint);
    const key = this.#keys.get(node);
    if (key === undefined) {
      const text = `the SavedModel '${this.#directory}': expected its variable '${node}' in the checkpoint, got none`;
      throw errorFor("INVALID_MODEL", text);
    }
    const { dtype, shape, bytes } = this.#checkpoint.read(key);
    const tensorShape = { dim: shape.map((size) => ({ size })) };
    return dtype === STRING
      ? { dtype, tensorShape, stringVal: stringsOf(bytes, product(shape)) }
      : { dtype, tensorShape, tensorContent: bytes };
  }

  #open(): TensorBundle {
    const folder = join(this.#directory, "variables");
    return new TensorBundle(join(existsSync(folder) ? folder : this.#directory, "variables"));
  }

  /**
   * Keys of the checkpoint by the names of the variables' nodes: as the function says that restores them, else by the
   * names of the variables themselves. Nodes with the same shared name are one variable.
   */
  #readKeys(checkpoint: TensorBundle): Map<string, string> {
    const { graphDef = {}, saverDef } = this.#metaGraph;
    const restored = new Map(restoredVariables(graphDef, saverDef?.restoreOpName));
    // Keras 3 saves copies of variables. Each begins as the variable that the signatures read.
    for (const { name, op, input } of graphDef.node ?? []) {
      const key = op === "ReadVariableOp" ? restored.get(name.replace(INITIALIZER, "")) : undefined;
      if (key !== undefined && INITIALIZER.test(name)) restored.set(input?.[0]?.split(":")[0] ?? "", key);
    }
    const variables = (graphDef.node ?? [])
      .filter(({ op }) => VARIABLES.has(op))
      .map(({ name, attr }) => ({ name, shared: textOf(attr?.shared_name?.s) || name }));
    const ofShared = new Map<string, string>();
    for (const { name, shared } of variables) {
      const key = [restored.get(name), shared, name].find((one) => one !== undefined && checkpoint.has(one));
      if (key !== undefined && (restored.has(name) || !ofShared.has(shared))) ofShared.set(shared, key);
    }
    return new Map(
      variables.flatMap(({ name, shared }) => {
        const key = ofShared.get(shared);
        return key === undefined ? [] : [[name, key] as const];
      }),
    );
  }
}

const INITIALIZER = /\/Initializer\/ReadVariableOp$/;

const textOf = (bytes: Uint8Array | undefined): string => Buffer.from(bytes ?? []).toString("utf8");

/**
 * The variables' nodes that a restoring function assigns, with the keys that it reads. Names of variables need not be
 * unique, so this is the only certain way.
 */
function restoredVariables({ node = [], library }: TfGraphMessage, restore = ""): [string, string][] {
  const call = node.find(({ name }) => name === restore.split(":")[0]);
  const called = library?.function?.find(({ signature }) => signature.name === call?.attr?.f?.func?.name);
  if (call === undefined || called === undefined) return [];
  const inner = new Map((called.nodeDef ?? []).map((one) => [one.name, one]));
  const positions = new Map((called.signature.inputArg ?? []).map(({ name }, i) => [name, i]));
  const pairs: [string, string][] = [];
  for (const { op, input = [] } of inner.values()) {
    if (op !== "AssignVariableOp") continue;
    let source = input[1] ?? "";
    const passed = new Set<unknown>();
    for (let from = inner.get(source.split(":")[0]!); from?.op === "Identity" && !passed.has(from); ) {
      passed.add(from);
      source = from.input?.[0] ?? "";
      from = inner.get(source.split(":")[0]!);
    }
    const reader = inner.get(source.split(":")[0]!);
    const names = inner.get(reader?.input?.[1]?.split(":")[0] ?? "")?.attr?.value?.tensor;
    const key = names?.stringVal?.[Number(source.split(":").at(-1))];
    const variable = call.input?.[positions.get(input[0]!) ?? -1];
    if (key !== undefined && variable !== undefined) pairs.push([variable.split(":")[0]!, textOf(key)]);
  }
  return pairs;
}

/** Strings of a checkpoint: their lengths, a checksum of those, and their bytes. */
function stringsOf(bytes: Uint8Array, count: number): Uint8Array[] {
  const reader = new BlockReader(bytes, 0, bytes.byteLength);
  const lengths = Array.from({ length: count }, () => reader.varint());
  reader.bytes(4);
  return lengths.map((length) => reader.bytes(length));
}

const STRING = 7;

function graphModel(
  path: string,
  signature: Signature,
  flat: FlatGraph,
  readVariable: (node: string) => TfTensorMessage,
  label: string,
): Omit<GraphModelFile, "description"> {
  const weights = new Weights(label);
  const addWeights = (nodes: readonly FlatNode[]) => {
    for (const { name, op, attr } of nodes) {
      if (op !== "Const") continue;
      const variable = flat.variables.get(name);
      weights.add(name, variable === undefined ? attr.value?.tensor : readVariable(variable));
    }
  };
  addWeights(flat.nodes);
  addWeights(flat.initializer);
  for (const { nodes } of flat.functions) addWeights(nodes);
  const initializer = flat.initializer.length > 0 ? graphJson(flat.initializer) : undefined;
  const topology = {
    ...graphJson(flat.nodes),
    library: {
      function: flat.functions.map(({ name, inputs, nodes, results }) => ({
        signature: {
          name,
          inputArg: inputs.map((input) => ({ name: input })),
          outputArg: [...results.keys()].map((output) => ({ name: output })),
        },
        nodeDef: nodes.map(nodeJson),
        ret: Object.fromEntries(results),
      })),
    },
  };
  return { json: modelJson(path, signature, topology, initializer), ...weights.joined() };
}

const graphJson = (nodes: readonly FlatNode[]): object => ({
  versions: { producer: 0 },
  node: nodes.map(nodeJson),
});

const ones = (count: number): TfAttributeMessage => ({ list: { i: new Array<number>(count).fill(1) } });
const normalization = { epsilon: { f: 1e-4 } };

/** Defaults that SavedModels leave out, where TensorFlow.js has none or another one. */
const DEFAULTS: Readonly<Record<string, Readonly<Record<string, TfAttributeMessage>>>> = {
  Conv2D: { dilations: ones(4) },
  DepthwiseConv2d: { dilations: ones(4) },
  DepthwiseConv2dNative: { dilations: ones(4) },
  Conv3D: { dilations: ones(5) },
  FusedBatchNorm: normalization,
  FusedBatchNormV2: normalization,
  FusedBatchNormV3: normalization,
  TopKV2: { sorted: { b: true } },
  CropAndResize: { method: { s: Buffer.from("bilinear") }, extrapolation_value: { f: 0 } },
  DepthToSpace: { data_format: { s: Buffer.from("NHWC") } },
  FakeQuantWithMinMaxVars: { min: { f: -6 }, max: { f: 6 } },
  StringSplit: { skip_empty: { b: true } },
  TensorArrayV3: { clear_after_read: { b: true } },
};

/** A node as TensorFlow.js reads it. Its constants are among the weights. */
function nodeJson({ name, op, input, attr }: FlatNode): object {
  const attributes = Object.entries({ ...DEFAULTS[op], ...attr })
    .filter(([key]) => !key.startsWith("_") && !(op === "Const" && key === "value"))
    .map(([key, value]) => [key, attributeJson(value)]);
  return { name, op, input, attr: Object.fromEntries(attributes) };
}

const base64 = (bytes: Uint8Array): string => Buffer.from(bytes).toString("base64");

function attributeJson(attribute: TfAttributeMessage): object {
  const { s, list, tensor: _, ...others } = attribute;
  return {
    ...others,
    ...(s !== undefined && { s: base64(s) }),
    ...(list && { list: { ...list, ...(list.s && { s: list.s.map(base64) }) } }),
  };
}

/** Weights of TensorFlow.js, which has floats of 32 bits, integers of 32 bits, truths and strings. */
class Weights {
  /** Elements that a file does not list, because they repeat the last one of a list. */
  #repeated = 0;
  readonly #specs = new Map<string, { name: string; shape: number[]; dtype: string }>();
  readonly #parts: Uint8Array[] = [];

  constructor(private readonly label: string) {}

  add(name: string, tensor: TfTensorMessage | undefined): void {
    if (this.#specs.has(name)) return;
    const where = `${this.label}: constant '${name}'`;
    if (tensor === undefined) throw errorFor("INVALID_MODEL", `${where}: expected a value, got none`);
    const shape = (tensor.tensorShape?.dim ?? []).map(({ size = 0 }) => Number(size));
    const count = product(shape);
    this.#repeated += Math.max(0, count - listedCount(tensor));
    if (!(this.#repeated <= MOST_REPEATED)) {
      const text = `${where}: expected at most ${MOST_REPEATED} elements that the file does not list, got more`;
      throw errorFor("INVALID_MODEL", text);
    }
    const [dtype, bytes] = weightOf(tensor, count, where);
    this.#specs.set(name, { name, shape, dtype });
    this.#parts.push(bytes);
  }

  joined(): Pick<GraphModelFile, "weightSpecs" | "weightData"> {
    const total = this.#parts.reduce((sum, { byteLength }) => sum + byteLength, 0);
    const joined = new Uint8Array(total);
    let offset = 0;
    for (const part of this.#parts) {
      joined.set(part, offset);
      offset += part.byteLength;
    }
    return { weightSpecs: [...this.#specs.values()], weightData: joined.buffer };
  }
}

/** Elements that all constants of a model may leave out: 256 MB of floats. */
const MOST_REPEATED = 2 ** 26;

/** Number of elements that a tensor has in its file, or bytes of its contents. */
function listedCount(tensor: TfTensorMessage): number {
  const { dtype = 0, tensorContent, stringVal } = tensor;
  const list = dtype === STRING ? stringVal : KINDS[dtype]?.listed(tensor);
  return Math.max(tensorContent?.byteLength ?? 0, list?.length ?? 0);
}

const product = (shape: readonly number[]): number => shape.reduce((count, dim) => count * dim, 1);

type Numbers =
  | readonly (number | bigint | boolean)[]
  | { readonly [index: number]: number | bigint; length: number };

interface NumberKind {
  readonly dtype: "float32" | "int32" | "bool";
  readonly array: new (buffer: ArrayBuffer) => Numbers;
  readonly listed: (tensor: TfTensorMessage) => Numbers | undefined;
  /** The number of an element. @default the element */
  readonly read?: (element: number) => number;
}

/** Numbers of TensorFlow's types, and how their elements are stored. */
const KINDS: Readonly<Record<number, NumberKind>> = {
  1: { dtype: "float32", array: Float32Array, listed: ({ floatVal }) => floatVal },
  2: { dtype: "float32", array: Float64Array, listed: ({ doubleVal }) => doubleVal },
  3: { dtype: "int32", array: Int32Array, listed: ({ intVal }) => intVal },
  4: { dtype: "int32", array: Uint8Array, listed: ({ intVal }) => intVal },
  5: { dtype: "int32", array: Int16Array, listed: ({ intVal }) => intVal },
  6: { dtype: "int32", array: Int8Array, listed: ({ intVal }) => intVal },
  9: { dtype: "int32", array: BigInt64Array, listed: ({ int64Val }) => int64Val },
  10: { dtype: "bool", array: Uint8Array, listed: ({ boolVal }) => boolVal },
  14: { dtype: "float32", array: Uint16Array, listed: ({ halfVal }) => halfVal, read: fromBfloat16 },
  17: { dtype: "int32", array: Uint16Array, listed: ({ intVal }) => intVal },
  19: { dtype: "float32", array: Uint16Array, listed: ({ halfVal }) => halfVal, read: fromFloat16 },
  22: { dtype: "int32", array: Uint32Array, listed: ({ uint32Val }) => uint32Val },
  23: { dtype: "int32", array: BigUint64Array, listed: ({ uint64Val }) => uint64Val },
};

/** @returns the type in TensorFlow.js, and the bytes */
function weightOf(tensor: TfTensorMessage, count: number, where: string): [string, Uint8Array] {
  const { dtype = 0, tensorContent } = tensor;
  if (dtype === STRING) return ["string", stringBytes(tensor.stringVal ?? [], count)];
  const kind = KINDS[dtype];
  if (kind === undefined)
    throw errorFor(
      "MODEL_NOT_SUPPORTED",
      `${where}: TensorFlow.js has no tensors of TensorFlow's type ${dtype}`,
    );
  const isContent = (tensorContent?.byteLength ?? 0) > 0;
  const given = isContent
    ? new kind.array(new Uint8Array(tensorContent!).buffer)
    : (kind.listed(tensor) ?? []);
  if (given.length > count || (isContent && given.length !== count))
    throw errorFor("INVALID_MODEL", `${where}: expected ${count} elements, got ${given.length}`);
  const out =
    kind.dtype === "float32"
      ? new Float32Array(count)
      : kind.dtype === "bool"
        ? new Uint8Array(count)
        : new Int32Array(count);
  // A list that is shorter repeats its last element.
  for (let i = 0; i < count && given.length > 0; i++) {
    const element = given[Math.min(i, given.length - 1)]!;
    const number = kind.read?.(element as number) ?? Number(element);
    out[i] = kind.dtype === "int32" ? Math.max(-(2 ** 31), Math.min(2 ** 31 - 1, number)) : number;
  }
  return [kind.dtype, new Uint8Array(out.buffer)];
}

/** Strings as TensorFlow.js stores them: each after its length in 4 bytes. */
function stringBytes(given: readonly Uint8Array[], count: number): Uint8Array {
  const strings = Array.from(
    { length: count },
    (_, i) => given[Math.min(i, given.length - 1)] ?? new Uint8Array(),
  );
  return Buffer.concat(
    strings.flatMap((one) => {
      const length = Buffer.alloc(4);
      length.writeUInt32LE(one.byteLength);
      return [length, one];
    }),
  );
}
