import { readFile } from "node:fs/promises";
import type { io, DataType as TfDataType, Tensor as TfTensor } from "@tensorflow/tfjs";
import type { ModelDescription, WorkerModel } from "@tritonjs/core/backend";
import type { InstanceInfo, Tensors } from "@tritonjs/core/internal";
import { assertInside, isInside } from "@tritonjs/core/internal/worker";
import {
  type DataType,
  type Elements,
  errorFor,
  type FixedDataType,
  floatReader,
  floatWriter,
  fromConfigDataType,
  Tensor,
  TritonError,
  typedArrayFor,
} from "@tritonjs/protocol";
import { openKerasModel } from "./keras-file.js";
import {
  graphDescription,
  type ModelJson,
  readModelJson,
  tensorDataType,
  weightBytes,
  weightFiles,
} from "./model-json.js";
import { type GraphModelFile, readFrozenGraph, readSavedModel } from "./saved-model.js";
import { isNative, openRuntime, type TensorflowRuntime, type Tf } from "./tensorflow-runtime.js";

/** `model.json`, the directory of a SavedModel, a frozen graph, or a file of Keras. */
export type TensorflowFormat = "json" | "saved_model" | "frozen_graph" | "keras";

/** The data that a worker needs to open its model. It survives structured cloning. */
export interface TensorflowData {
  readonly path: string;
  readonly format: TensorflowFormat;
  /** Directory that contains all files of the model. */
  readonly directory: string;
  readonly signature: string;
  /** Outputs of a frozen graph; undefined for its last nodes. */
  readonly outputs?: readonly string[] | undefined;
  readonly runtime: TensorflowRuntime;
}

/** Entry of workers that run a TensorFlow model, one model in each worker. */
export async function load(data: unknown, { modelConfig, device }: InstanceInfo): Promise<WorkerModel> {
  const { runtime } = data as TensorflowData;
  const tf = await openRuntime(runtime, device.kind === "KIND_GPU" ? device.id : undefined);
  const model = await openModel(tf, data as TensorflowData);
  const types = modelConfig.output.map(
    ({ name, dataType }) => [name, fromConfigDataType(dataType) ?? "FP32"] as const,
  );
  const outputs = new Map(types);
  return {
    // A backend of TensorFlow.js may return its own memory, for example that of a constant.
    ownsOutputs: false,
    details: { runtime, description: JSON.stringify(model.description) },
    execute: async ({ inputs }) => ({ merged: await run(tf, model, inputs, outputs) }),
    close: async () => model.dispose(),
  };
}

/** Describes the model for a synchronous `bind`. */
export async function describe(data: unknown): Promise<ModelDescription> {
  const tf = await openRuntime((data as TensorflowData).runtime, undefined);
  return (await openModel(tf, data as TensorflowData)).description;
}

async function run(
  tf: Tf,
  model: OpenTensorFlowModel,
  inputs: Tensors,
  types: ReadonlyMap<string, DataType>,
): Promise<Tensors> {
  const held: TfTensor[] = [];
  try {
    const feeds: Record<string, TfTensor> = {};
    for (const [name, tensor] of inputs) {
      feeds[name] = toTf(tf, name, tensor);
      held.push(feeds[name]);
    }
    const results = await model.run(feeds, [...types.keys()]);
    held.push(...results.values());
    const outputs = new Map<string, Tensor>();
    for (const [name, datatype] of types) {
      const result = results.get(name);
      if (result !== undefined) outputs.set(name, await fromTf(name, datatype, result));
    }
    return outputs;
  } catch (error) {
    if (TritonError.is(error)) throw error;
    throw errorFor("INTERNAL", `TensorFlow: ${TritonError.from(error).message.split("\n")[0]}`, {
      cause: error,
    });
  } finally {
    tf.dispose(held);
  }
}

/** The type of TensorFlow.js for a data type. TensorFlow.js has only four types. */
function tfTypeOf(datatype: DataType): "float32" | "int32" | "bool" | "string" {
  if (datatype === "BYTES") return "string";
  if (datatype === "BOOL") return "bool";
  return floatReader(datatype) === undefined ? "int32" : "float32";
}

/**
 * Converts a tensor for TensorFlow.js. Integers of 64 bits become 32-bit integers, and doubles become floats, because
 * TensorFlow.js has no others.
 *
 * @throws TritonError INVALID_ARG for an integer that does not fit
 */
function toTf(tf: Tf, name: string, { datatype, shape, elements }: Tensor): TfTensor {
  const dtype = tfTypeOf(datatype);
  return tf.tensor(valuesOf(name, datatype, elements) as Float32Array, [...shape], dtype);
}

function valuesOf(name: string, datatype: DataType, elements: Elements): Elements {
  const toNumber = floatReader(datatype);
  if (toNumber !== undefined) {
    return elements instanceof Float32Array ? elements : Float32Array.from(elements as Uint16Array, toNumber);
  }
  switch (datatype) {
    case "UINT8":
    case "INT8":
    case "UINT16":
    case "INT16":
      return Int32Array.from(elements as Int16Array);
    case "UINT32":
    case "INT64":
    case "UINT64":
      return Int32Array.from(elements as Uint32Array, (value) => narrowed(name, value));
    default:
      return elements;
  }
}

function narrowed(name: string, value: number | bigint): number {
  const number = Number(value);
  if (number === (number | 0)) return number;
  const text = `input '${name}': expected integers of 32 bits, which TensorFlow.js has, got ${value}`;
  throw errorFor("INVALID_INPUT", text);
}

/**
 * Converts an output to a tensor of the data type that the model's configuration declares. Resolves when the output is
 * computed.
 *
 * @throws TritonError INTERNAL for an output of another kind
 */
async function fromTf(name: string, datatype: DataType, output: TfTensor): Promise<Tensor> {
  const wanted = tfTypeOf(datatype);
  if (wanted !== output.dtype) {
    const text = `output '${name}': expected ${datatype}, got ${output.dtype} from TensorFlow.js`;
    throw errorFor("INVALID_OUTPUT", text);
  }
  if (wanted === "string") {
    const bytes = (await output.bytes()) as Uint8Array[];
    return Tensor.fromElements("BYTES", [...output.shape], bytes);
  }
  const data = (await output.data()) as Float32Array | Int32Array | Uint8Array;
  return Tensor.fromElements(datatype, [...output.shape], elementsOf(datatype, data));
}

function elementsOf(datatype: DataType, data: Float32Array | Int32Array | Uint8Array): Elements {
  const array = typedArrayFor(datatype as FixedDataType);
  if (data instanceof array) return data;
  if (datatype === "INT64") return BigInt64Array.from(data, BigInt);
  if (datatype === "UINT64") return BigUint64Array.from(data, BigInt);
  const fromNumber = floatWriter(datatype);
  return new array(
    fromNumber === undefined ? data : (Array.from(data, fromNumber) as unknown as Float64Array),
  );
}

/** A model of any kind. Its tensors have the names that clients use. */
interface OpenTensorFlowModel {
  readonly description: ModelDescription;
  /** Returns outputs by name. The caller disposes them. */
  run(inputs: Readonly<Record<string, TfTensor>>, outputs: readonly string[]): Promise<Map<string, TfTensor>>;
  dispose(): void;
}

/**
 * Opens a model.
 *
 * @throws TritonError INVALID_ARG with TensorFlow's words, or with the fault of the files
 */
async function openModel(tf: Tf, location: TensorflowData): Promise<OpenTensorFlowModel> {
  try {
    const { format, path, signature, outputs } = location;
    if (format === "saved_model" && isNative(location.runtime)) return await openSavedModel(tf, location);
    if (format === "keras") return openLayers(await openKerasModel(tf, path));
    if (format !== "json") {
      return await openGraphFile(
        tf,
        format === "saved_model" ? readSavedModel(path, signature) : readFrozenGraph(path, outputs),
      );
    }
    const json = readModelJson(location.path);
    const handler = fileHandler(json, location.directory);
    if (json.kind === "layers") return openLayers(await tf.loadLayersModel(handler));
    const graph = await tf.loadGraphModel(handler);
    checkOperations(graph, location.path);
    return openGraph(graph, graphDescription(json), json.signature.inputs, json.signature.outputs);
  } catch (error) {
    if (TritonError.is(error)) throw error;
    const { message } = TritonError.from(error);
    const text = `cannot load the TensorFlow model '${location.path}': ${message.split("\n")[0]}`;
    throw errorFor("INVALID_MODEL", text, { cause: error });
  }
}

async function openGraphFile(tf: Tf, file: GraphModelFile): Promise<OpenTensorFlowModel> {
  const { json, weightSpecs, weightData } = file;
  const artifacts = { ...json.content, weightSpecs, weightData } as io.ModelArtifacts;
  const graph = await tf.loadGraphModel({ load: async () => artifacts });
  checkOperations(graph, json.path);
  return openGraph(graph, file.description, json.signature.inputs, json.signature.outputs);
}

interface ReadNode {
  readonly name: string;
  readonly op: string;
  /** Absent for an operation that TensorFlow.js does not know. */
  readonly category?: string;
}

interface ReadGraph {
  readonly nodes?: Readonly<Record<string, ReadNode>>;
  readonly functions?: Readonly<Record<string, ReadGraph>>;
}

/**
 * Rejects unknown operations when the model loads. TensorFlow.js would detect them only when it runs them.
 *
 * @throws TritonError UNSUPPORTED that names them
 */
function checkOperations(graph: object, path: string): void {
  const { executor } = graph as { executor?: { graph?: ReadGraph } };
  const { nodes = {}, functions = {} } = executor?.graph ?? {};
  const all = [nodes, ...Object.values(functions).map((one) => one.nodes ?? {})].flatMap(
    Object.values<ReadNode>,
  );
  const unknown = new Map<string, string>();
  for (const { category, op, name } of all)
    if (category === undefined && !unknown.has(op)) unknown.set(op, name);
  if (unknown.size === 0) return;
  const names = [...unknown].map(([op, node]) => `${op} (node '${node}')`);
  const text = `cannot serve the TensorFlow model '${path}': TensorFlow.js lacks its operations ${names.join(", ")}`;
  throw errorFor("MODEL_NOT_SUPPORTED", text);
}

type NodeNames = Readonly<Record<string, { readonly name: string }>> | undefined;

function openGraph(
  graph: Awaited<ReturnType<Tf["loadGraphModel"]>>,
  description: ModelDescription,
  inputNodes: NodeNames,
  outputNodes: NodeNames,
): OpenTensorFlowModel {
  /** Graphs with loops, or with outputs of unknown size, need the asynchronous call. The synchronous call is faster. */
  let isAsync = false;
  const nodeOf = (nodes: NodeNames, name: string) => nodes?.[name]?.name ?? name;
  return {
    description,
    async run(inputs, outputs) {
      const feeds = Object.fromEntries(
        Object.entries(inputs).map(([name, tensor]) => [nodeOf(inputNodes, name), tensor]),
      );
      const nodes = outputs.map((name) => nodeOf(outputNodes, name));
      let results: TfTensor | TfTensor[];
      try {
        results = isAsync ? await graph.executeAsync(feeds, nodes) : graph.execute(feeds, nodes);
      } catch (error) {
        if (isAsync || !TritonError.from(error).message.includes("executeAsync")) throw error;
        isAsync = true;
        results = await graph.executeAsync(feeds, nodes);
      }
      return byName(outputs, results);
    },
    dispose: () => graph.dispose(),
  };
}

type Layers = Awaited<ReturnType<Tf["loadLayersModel"]>>;

function openLayers(layers: Layers): OpenTensorFlowModel {
  // Clients use the names of layers for tensors.
  const spec = ({ sourceLayer, shape, dtype }: Layers["inputs"][number]) => ({
    name: sourceLayer.name,
    dtype: tensorDataType(dtype),
    shape: shape.map((dim) => dim ?? -1),
  });
  const description = { inputs: layers.inputs.map(spec), outputs: layers.outputs.map(spec) };
  const names = description.outputs.map(({ name }) => name);
  return {
    description,
    async run(inputs, outputs) {
      const ordered = description.inputs.map(({ name }) => inputs[name]!);
      const results = layers.predictOnBatch(ordered.length === 1 ? ordered[0]! : ordered);
      const all = byName(names, results);
      for (const [name, tensor] of all) if (!outputs.includes(name)) tensor.dispose();
      return new Map([...all].filter(([name]) => outputs.includes(name)));
    },
    dispose: () => void layers.dispose(),
  };
}

/** The functions that tfjs-node adds to TensorFlow.js and that are used here. */
interface NodeApi {
  getMetaGraphsFromSavedModel(path: string): Promise<
    readonly {
      readonly tags: string[];
      readonly signatureDefs: Readonly<Record<string, SavedSignature>>;
    }[]
  >;
  loadSavedModel(path: string, tags: string[], signature: string): Promise<SavedModel>;
}

interface SavedSignature {
  readonly inputs: Readonly<Record<string, SavedTensor>>;
  readonly outputs: Readonly<Record<string, SavedTensor>>;
}

interface SavedTensor {
  readonly dtype: TfDataType;
  readonly tfDtype?: string;
  readonly shape: readonly (number | { readonly array?: readonly number[] } | null)[];
}

interface SavedModel {
  predict(inputs: Readonly<Record<string, TfTensor>>): TfTensor | Record<string, TfTensor>;
  dispose(): void;
}

async function openSavedModel(tf: Tf, { path, signature }: TensorflowData): Promise<OpenTensorFlowModel> {
  const api = (tf as Tf & { readonly node: NodeApi }).node;
  const graphs = await api.getMetaGraphsFromSavedModel(path);
  const graph = graphs.find(({ signatureDefs }) => signatureDefs[signature] !== undefined);
  if (graph === undefined) {
    const names = graphs.flatMap(({ signatureDefs }) => Object.keys(signatureDefs));
    const text = `unknown signature '${signature}' of the SavedModel '${path}': expected one of [${names.join(", ")}]`;
    throw errorFor("INVALID_CONFIG", text);
  }
  const { inputs, outputs } = graph.signatureDefs[signature]!;
  const model = await api.loadSavedModel(path, graph.tags, signature);
  const specs = (tensors: Readonly<Record<string, SavedTensor>>) =>
    Object.entries(tensors).map(([name, { dtype, tfDtype, shape }]) => ({
      name,
      dtype: tensorDataType(tfDtype ?? dtype),
      shape: shape.map(dimOf),
    }));
  return {
    description: { inputs: specs(inputs), outputs: specs(outputs) },
    async run(feeds, wanted) {
      const answer = model.predict(feeds);
      const all = "dtype" in answer ? { [wanted[0]!]: answer as TfTensor } : answer;
      return new Map(Object.entries(all).filter(([name]) => wanted.includes(name)));
    },
    dispose: () => model.dispose(),
  };
}

/** tfjs-node gives dimensions as numbers, or each in an object. */
function dimOf(dim: SavedTensor["shape"][number]): number {
  const size = typeof dim === "object" && dim !== null ? dim.array?.[0] : dim;
  return size === undefined || size === null || size < 0 ? -1 : size;
}

function byName(names: readonly string[], results: TfTensor | TfTensor[]): Map<string, TfTensor> {
  const list = Array.isArray(results) ? results : [results];
  return new Map(names.map((name, i) => [name, list[i]!]));
}

/**
 * Loads a model for TensorFlow.js from files. TensorFlow.js has a handler of `file://` only with tfjs-node.
 *
 * @param directory the directory that must contain all files of weights
 */
function fileHandler(model: ModelJson, directory: string): io.IOHandler {
  return {
    load: async () => ({
      ...(model.content as io.ModelArtifacts),
      weightSpecs: model.weightsManifest.flatMap(({ weights }) => weights) as io.WeightsManifestEntry[],
      weightData: await readWeights(model, directory),
    }),
  };
}

/** Bytes of weights with texts, whose size no file says. */
const MOST_TEXT_BYTES = 2 ** 31;

/** @throws TritonError INVALID_ARG that names the missing file, or gives the number of missing bytes */
async function readWeights(model: ModelJson, directory: string): Promise<ArrayBuffer> {
  const parts: Buffer[] = [];
  const expected = weightBytes(model);
  let read = 0;
  for (const file of weightFiles(model)) {
    if (!isInside(directory, file)) {
      const text = `weights of the TensorFlow.js model '${model.path}': expected a path inside the model's directory, got '${file}'`;
      throw errorFor("PATH_NOT_ALLOWED", text);
    }
    await assertInside(directory, file);
    try {
      parts.push(await readFile(file));
      read += parts.at(-1)!.byteLength;
    } catch (cause) {
      const { code } = cause as NodeJS.ErrnoException;
      const why = code === "ENOENT" ? "is missing" : `cannot be read: ${TritonError.from(cause).message}`;
      const text = `the weights '${file}' of the TensorFlow.js model '${model.path}' ${why}`;
      throw errorFor("INVALID_MODEL", text, { cause });
    }
    if (read > (expected ?? MOST_TEXT_BYTES)) break;
  }
  const total = parts.reduce((sum, { byteLength }) => sum + byteLength, 0);
  if (total !== (expected ?? Math.min(total, MOST_TEXT_BYTES))) {
    const text = `weights of the TensorFlow.js model '${model.path}': expected ${expected ?? `at most ${MOST_TEXT_BYTES}`} bytes, got ${total}`;
    throw errorFor("INVALID_MODEL", text);
  }
  const joined = new Uint8Array(total);
  let offset = 0;
  for (const part of parts) {
    joined.set(part, offset);
    offset += part.byteLength;
  }
  return joined.buffer;
}
