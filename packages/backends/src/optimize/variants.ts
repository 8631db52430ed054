import { type DataType, errorFor, type Tensor, TritonError, toOnnxType } from "@tritonjs/protocol";
import {
  cleanUp,
  customOperators,
  type FixedShapes,
  fixShapes,
  shortenNames,
} from "../onnx-graph/clean-up.js";
import { DYNAMIC_OPSET, quantizeDynamically } from "../onnx-graph/dynamic-int8.js";
import { dropUnused, isStandard, makeTensor } from "../onnx-graph/graph-editor.js";
import { convertToHalf, storeInHalf } from "../onnx-graph/half-precision.js";
import { quantizeWeightsToInt4 } from "../onnx-graph/int4-weights.js";
import type { LayerOptions, VariantChanges } from "../onnx-graph/layer-choice.js";
import type { NodeMessage, ValueMessage } from "../onnx-graph/onnx-messages.js";
import {
  countOf,
  innerGraphs,
  type OnnxModel,
  tensorBytes,
  type WriteOptions,
} from "../onnx-graph/onnx-model.js";
import { raiseOpset } from "../onnx-graph/raise-opset.js";
import { quantizeStatically, STATIC_OPSET, valuesToCalibrate } from "../onnx-graph/static-int8.js";
import { valueTypes } from "../onnx-graph/value-types.js";
import { importOnnxRuntime } from "../onnxruntime/ort-session.js";
import { type CalibrationOptions, calibrate } from "./calibrate.js";
import { ModelRunner, type Sample } from "./model-runner.js";

/** The forms of a model that {@link makeVariant} makes. */
export const VARIANTS = [
  "clean",
  "dynamic-int8",
  "static-int8",
  "int4-weights",
  "fp16",
  "fp16-weights",
] as const;

export type VariantName = (typeof VARIANTS)[number];

/** Descriptions of the variants, for reports. */
export const VARIANT_TEXTS: Readonly<Record<VariantName, string>> = {
  clean: "constants computed, unused and repeated nodes removed",
  "dynamic-int8": "int8 weights; matrix products in int8, with the range of each run",
  "static-int8": "int8 weights and values, with ranges from calibration",
  "int4-weights": "matrices in 4 bits by blocks, other weights in int8",
  fp16: "weights and values in FP16",
  "fp16-weights": "weights in FP16, computed in FP32",
};

/** Options of {@link makeVariant}. */
export interface VariantOptions extends LayerOptions, CalibrationOptions {
  /** Samples for the calibration of `static-int8`. */
  readonly samples?: readonly Sample[];
  /** Block of `int4-weights`. @default 32 */
  readonly blockSize?: 16 | 32 | 64 | 128 | 256;
  /** 7 bits of int8 weights. @default where this processor adds products in 16 bits: x64 without VNNI */
  readonly reduceRange?: boolean;
}

/**
 * Prepares a model for its variants: checks its operators, gives it the operator set that quantisation needs where that
 * is safe, fixes shapes, and cleans it up.
 *
 * @throws TritonError UNSUPPORTED that names an operator which neither ONNX Runtime nor the model has; INVALID_ARG for
 * shapes that do not fit
 */
export async function prepareModel(model: OnnxModel, shapes: FixedShapes = {}): Promise<OnnxModel> {
  const [custom] = customOperators(model);
  if (custom !== undefined) {
    const [operator, node] = custom;
    const text =
      `the ONNX model ${model.label} has the operator '${operator}' in node '${node}': expected operators of ONNX and ONNX ` +
      "Runtime, because the graph of others cannot be checked";
    throw errorFor("MODEL_NOT_SUPPORTED", text);
  }
  const prepared = model.copy();
  try {
    fixShapes(prepared, shapes);
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    throw errorFor("INVALID_INPUT", `the ONNX model ${model.label}: ${error.message}`, { cause: error });
  }
  cleanUp(prepared);
  await foldConstants(prepared);
  raiseOpset(prepared);
  cleanUp(prepared);
  return prepared.commit();
}

/**
 * Makes a variant of a model that {@link prepareModel} prepared.
 *
 * @throws TritonError INVALID_ARG for a variant that leaves the model as it is, with the reason
 */
export async function makeVariant(
  name: VariantName,
  prepared: OnnxModel,
  options: VariantOptions = {},
): Promise<{ readonly model: OnnxModel; readonly changes: VariantChanges }> {
  const model = prepared.copy();
  if (name !== "clean") await foldConstants(model, true);
  const changes = await change(name, model, options);
  if (name !== "clean" && changes.layers.length === 0) {
    const version = model.opset();
    const least = name === "dynamic-int8" ? DYNAMIC_OPSET : name === "static-int8" ? STATIC_OPSET : 0;
    const why =
      version < least
        ? `it has operator set ${version}, and ${least} is needed`
        : "it has no layer that this changes";
    throw errorFor("MODEL_NOT_SUPPORTED", `variant '${name}' of the ONNX model ${model.label}: ${why}`);
  }
  return { model, changes };
}

async function change(name: VariantName, model: OnnxModel, options: VariantOptions): Promise<VariantChanges> {
  switch (name) {
    case "clean":
      return { layers: [] };
    case "dynamic-int8":
      return quantizeDynamically(model, options);
    case "static-int8": {
      const values = valuesToCalibrate(model, options);
      if (values.length === 0) return { layers: [] };
      const ranges = await calibrate(model, values, options.samples ?? [], options);
      const { layers } = quantizeStatically(model, { ...options, ranges });
      // Tables and recurrent layers have no form with fixed ranges.
      const keep = [...(options.keep ?? []), ...STATIC_LAYERS];
      return { layers: [...layers, ...quantizeDynamically(model, { ...options, keep }).layers] };
    }
    case "int4-weights": {
      const { layers } = quantizeWeightsToInt4(model, options);
      if (layers.length === 0) return { layers };
      return { layers: [...layers, ...quantizeDynamically(model, options).layers] };
    }
    case "fp16":
      return convertToHalf(model, options);
    case "fp16-weights":
      return storeInHalf(model, options);
  }
}

/** Layers that {@link quantizeStatically} has seen. */
const STATIC_LAYERS = ["MatMul", "Gemm", "Conv", "ConvTranspose"];

/**
 * Writes a variant, with short names inside: the file is as small as it can be.
 *
 * @returns bytes of all written files
 * @throws as `OnnxModel.write`
 */
export async function writeVariant(model: OnnxModel, path: string, options?: WriteOptions): Promise<number> {
  shortenNames(model);
  return model.write(path, options);
}

/**
 * Saves the form that ONNX Runtime makes of a model for this processor. It loads faster, because nothing is left to
 * optimise. Other processors, and other versions of ONNX Runtime, may refuse it.
 *
 * @throws TritonError INVALID_ARG with ONNX Runtime's words
 */
export async function saveOptimizedForm(file: string, target: string): Promise<void> {
  const ort = await importOnnxRuntime();
  try {
    const session = await ort.InferenceSession.create(file, {
      optimizedModelFilePath: target,
      graphOptimizationLevel: "all",
      logSeverityLevel: 4,
    });
    await session.release();
  } catch (error) {
    const text = `ONNX Runtime's own form of '${file}': ${TritonError.from(error).message}`;
    throw errorFor("INVALID_MODEL", text, { cause: error });
  }
}

/** Operators that give other values in each run, or whose results are kept as integers on purpose. */
const NOT_FOLDED = /^(Random|Multinomial|Bernoulli|DequantizeLinear$|QuantizeLinear$|DynamicQuantizeLinear$)/;

const RANDOM = /^(Random|Multinomial|Bernoulli)/;

/** Bytes that a folded constant may have, if what it is made of is smaller: a table of positions stays a formula. */
const LARGEST_GROWN = 4096;

/**
 * Computes the nodes of the main graph that depend on constants alone, by ONNX Runtime itself, and stores their results.
 *
 * @param widens also computes weights that the file stores in a smaller type, such as int8 with a scale: variants choose
 * their own form for them
 * @returns number of nodes that were computed
 */
async function foldConstants(model: OnnxModel, widens = false): Promise<number> {
  const { graph } = model.message;
  const constants = new Set(graph.initializer.map(({ name }) => name));
  const outputs = new Set(graph.output.map(({ name }) => name));
  const folded: NodeMessage[] = [];
  for (const node of graph.node) {
    const isConstant = node.input.every((name) => name === "" || constants.has(name));
    const isKept =
      !isStandard(node) || (widens ? RANDOM : NOT_FOLDED).test(node.opType) || innerGraphs(node).length > 0;
    if (!isConstant || isKept || node.output.some((name) => outputs.has(name))) continue;
    folded.push(node);
    for (const name of node.output) constants.add(name);
  }
  if (folded.length === 0) return 0;
  const results = await resultsOf(model, folded);
  if (results === undefined) return 0;
  // Widening keeps the number of elements, and changes their bytes.
  const sizeOf = ({ shape, bytes }: Tensor) => (widens ? countOf(shape) : bytes.byteLength);
  const sizes = new Map(
    graph.initializer.map((tensor) => [tensor.name, widens ? countOf(tensor.dims) : tensorBytes(tensor)]),
  );
  const done = new Set<NodeMessage>();
  for (const node of folded) {
    const values = node.output.flatMap((name) => (name === "" ? [] : [[name, results.get(name)] as const]));
    const before = node.input.map((name) => (name === "" ? 0 : sizes.get(name)));
    if (before.includes(undefined)) continue;
    const limit = Math.max(LARGEST_GROWN, ...before.map((size) => size ?? 0));
    const fits = (value: Tensor | undefined) =>
      value !== undefined && value.datatype !== "BYTES" && sizeOf(value) <= limit;
    if (!values.every(([, value]) => fits(value))) continue;
    done.add(node);
    for (const [name, value] of values) {
      sizes.set(name, sizeOf(value!));
      graph.initializer.push(initializerOf(name, value!));
    }
  }
  graph.node = graph.node.filter((node) => !done.has(node));
  dropUnused(graph);
  return done.size;
}

function initializerOf(name: string, { datatype, shape, bytes }: Tensor) {
  return makeTensor(name, toOnnxType(datatype as DataType)!, shape, bytes.slice());
}

/** Values of nodes that read only constants; undefined if ONNX Runtime cannot compute them alone. */
async function resultsOf(
  model: OnnxModel,
  nodes: readonly NodeMessage[],
): Promise<Map<string, Tensor> | undefined> {
  const part = model.copy();
  const { graph } = part.message;
  const types = valueTypes(model.message.graph);
  const names = nodes
    .flatMap(({ output }) => output)
    .filter((name) => name !== "" && types.get(name) !== undefined);
  const used = new Set(nodes.flatMap(({ input }) => input));
  graph.node = [...nodes];
  graph.initializer = model.message.graph.initializer.filter(({ name }) => used.has(name));
  graph.input = [];
  graph.valueInfo = [];
  graph.output = names.map(
    (name): ValueMessage => ({ name, type: { tensorType: { elemType: types.get(name)! } } }),
  );
  try {
    const runner = await ModelRunner.open(part);
    try {
      return await runner.run(new Map());
    } finally {
      await runner.close();
    }
  } catch {
    // Folding is a saving, not a need.
    return undefined;
  }
}
