import type { DataType, Tensor } from "@tritonjs/protocol";
import { toOnnxType } from "@tritonjs/protocol";
import { dropUnused, isStandard, makeTensor } from "../onnx-graph/graph-editor.js";
import type { NodeMessage, ValueMessage } from "../onnx-graph/onnx-messages.js";
import { countOf, innerGraphs, type OnnxModel, tensorBytes } from "../onnx-graph/onnx-model.js";
import { valueTypes } from "../onnx-graph/value-types.js";
import { ModelRunner } from "./model-runner.js";

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
export async function foldConstants(model: OnnxModel, widens = false): Promise<number> {
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
