import {
  attributeOf,
  dropUnused,
  GraphEditor,
  intAttribute,
  isStandard,
  makeTensor,
  operatorOf,
} from "./graph-editor.js";
import { ELEMENT, type GraphMessage, type NodeMessage, type TensorMessage } from "./onnx-messages.js";
import { innerGraphs, nodesOf, type OnnxModel, tensorBytes } from "./onnx-model.js";
import { valueTypes } from "./value-types.js";

/** Domains of the operators that ONNX Runtime has without a library of the user's. */
const BUILT_IN: ReadonlySet<string> = new Set([
  "",
  "ai.onnx",
  "ai.onnx.ml",
  "com.microsoft",
  "com.microsoft.nchwc",
  "com.ms.internal.nhwc",
]);

/** Operators of the model that neither ONNX Runtime nor the model defines, each with a node that uses it. */
export function customOperators(model: OnnxModel): ReadonlyMap<string, string> {
  const { graph, functions } = model.message;
  const own = new Set(functions.map(({ domain = "", name }) => `${domain}:${name}`));
  const found = new Map<string, string>();
  for (const node of nodesOf(graph)) {
    if (BUILT_IN.has(node.domain ?? "") || own.has(`${node.domain}:${node.opType}`)) continue;
    const operator = operatorOf(node);
    if (!found.has(operator)) found.set(operator, node.name || node.output[0] || operator);
  }
  return found;
}

/**
 * Makes a graph smaller without a change of what it computes: constants become initializers and are stored once, nodes
 * that only pass a value on are removed, and so are unused nodes, weights, texts and inner types.
 *
 * @returns number of removed nodes
 */
export function cleanUp(model: OnnxModel): number {
  const { graph } = model.message;
  const count = () => [...nodesOf(graph)].length;
  const before = count();
  constantsToInitializers(model, graph);
  dropTexts(model);
  shareInitializers(model);
  GraphEditor.edit(model, (editor) => removePassing(editor));
  shareNodes(graph);
  dropUnused(graph);
  return before - count();
}

/** Constant nodes of all graphs become initializers. */
function constantsToInitializers(model: OnnxModel, graph: GraphMessage): void {
  const kept: NodeMessage[] = [];
  for (const node of graph.node) {
    for (const inner of innerGraphs(node)) constantsToInitializers(model, inner);
    const tensor = isStandard(node) && node.opType === "Constant" ? constantOf(node) : undefined;
    if (tensor === undefined) kept.push(node);
    else graph.initializer.push(tensor);
  }
  graph.node = kept;
}

function constantOf(node: NodeMessage): TensorMessage | undefined {
  const name = node.output[0]!;
  const value = attributeOf(node, "value")?.t;
  if (value) return Object.assign(value, { name });
  const [attribute] = node.attribute;
  switch (attribute?.name) {
    case "value_float":
      return makeTensor(name, ELEMENT.FLOAT, [], Float32Array.of(attribute.f ?? 0));
    case "value_floats":
      return makeTensor(name, ELEMENT.FLOAT, [attribute.floats.length], Float32Array.from(attribute.floats));
    case "value_int":
      return makeTensor(name, ELEMENT.INT64, [], BigInt64Array.of(BigInt(attribute.i ?? 0)));
    case "value_ints":
      return makeTensor(
        name,
        ELEMENT.INT64,
        [attribute.ints.length],
        BigInt64Array.from(attribute.ints, BigInt),
      );
    default:
      return undefined;
  }
}

/** Removes what only people read. The names of nodes stay: reports name layers by them. */
function dropTexts({ message }: OnnxModel): void {
  delete message.docString;
  const visit = (graph: GraphMessage) => {
    delete graph.docString;
    graph.valueInfo = [];
    for (const node of graph.node) {
      delete node.docString;
      for (const inner of innerGraphs(node)) visit(inner);
    }
  };
  visit(message.graph);
}

/** Initializers of the main graph with the same elements become one. */
function shareInitializers(model: OnnxModel): void {
  const { graph } = model.message;
  const outputs = new Set(graph.output.map(({ name }) => name));
  const inputs = new Set(graph.input.map(({ name }) => name));
  const firsts = new Map<string, string>();
  const renamed = new Map<string, string>();
  for (const tensor of graph.initializer) {
    // External data is not read to find equal tensors.
    if (tensor.dataLocation === 1 || tensor.dataType === ELEMENT.STRING) continue;
    if (outputs.has(tensor.name) || inputs.has(tensor.name) || tensorBytes(tensor) > LARGEST_SHARED) continue;
    const bytes = Buffer.from(model.bytesOf(tensor)).toString("latin1");
    const key = `${tensor.dataType} ${tensor.dims.join()} ${bytes}`;
    const first = firsts.get(key);
    if (first === undefined) firsts.set(key, tensor.name);
    else renamed.set(tensor.name, first);
  }
  renameReads(graph, renamed);
}

/** Larger tensors are seldom equal. */
const LARGEST_SHARED = 2 ** 16;

/** Gives the readers of values other names to read. */
function renameReads(graph: GraphMessage, names: ReadonlyMap<string, string>): void {
  if (names.size === 0) return;
  for (const node of graph.node) {
    node.input = node.input.map((name) => names.get(name) ?? name);
    for (const inner of innerGraphs(node)) {
      const own = new Set([...inner.input, ...inner.initializer].map(({ name }) => name));
      for (const { output } of inner.node) for (const name of output) own.add(name);
      const visible = new Map([...names].filter(([name]) => !own.has(name)));
      renameReads(inner, visible);
      for (const value of inner.output) value.name = visible.get(value.name) ?? value.name;
    }
  }
}

/** Removes Identity, Dropout, and casts of a type to itself, unless they make an output of the graph. */
function removePassing(editor: GraphEditor): void {
  const { graph } = editor;
  const types = valueTypes(graph);
  const renamed = new Map<string, string>();
  for (const node of graph.node) {
    const [from = "", to = ""] = [node.input[0], node.output[0]];
    if (!isStandard(node) || editor.isOutput(to) || !passesOn(node, editor, types)) continue;
    renamed.set(to, renamed.get(from) ?? from);
    editor.replace(node, []);
  }
  renameReads(graph, renamed);
}

function passesOn(node: NodeMessage, editor: GraphEditor, types: ReadonlyMap<string, number>): boolean {
  const [from = "", , training] = node.input;
  switch (node.opType) {
    case "Identity":
      return true;
    case "Dropout": {
      const isUsed = node.output[1] !== undefined && editor.consumers(node.output[1]).length > 0;
      const mode = editor.constant(training);
      const trains =
        training !== undefined && training !== "" && (!mode || editor.model.bytesOf(mode)[0] !== 0);
      return !isUsed && !trains;
    }
    case "Cast":
      return types.get(from) !== undefined && types.get(from) === intAttribute(node, "to", 0);
    default:
      return false;
  }
}

/**
 * Gives the values inside of a model, its constants and its nodes short names, or none where ONNX allows it. In a model
 * of integers the names of exporters take a tenth of the file. Inputs and outputs keep theirs.
 */
export function shortenNames({ message }: OnnxModel): void {
  const kept = new Set([...message.graph.input, ...message.graph.output].map(({ name }) => name));
  const taken = new Set(kept);
  const short = new Map<string, string>();
  let count = 0;
  const rename = (name: string): string => {
    if (name === "" || kept.has(name)) return name;
    let made = short.get(name);
    while (made === undefined) {
      const next = (count++).toString(36);
      if (!taken.has(next)) made = next;
    }
    short.set(name, made);
    return made;
  };
  const visit = (graph: GraphMessage) => {
    for (const one of [...graph.initializer, ...graph.input, ...graph.output, ...graph.valueInfo])
      one.name = rename(one.name);
    for (const node of graph.node) {
      delete node.name;
      node.input = node.input.map(rename);
      node.output = node.output.map(rename);
      for (const inner of innerGraphs(node)) visit(inner);
    }
  };
  visit(message.graph);
}

/** Operators that give other values in each run. */
const RANDOM = /^(Random|Multinomial|Bernoulli|Dropout)/;

/** Nodes with the same operator, attributes and inputs become one. Exporters repeat shapes and casts often. */
function shareNodes(graph: GraphMessage): void {
  const outputs = new Set(graph.output.map(({ name }) => name));
  const firsts = new Map<string, NodeMessage>();
  const renamed = new Map<string, string>();
  for (const node of graph.node) {
    node.input = node.input.map((name) => renamed.get(name) ?? name);
    const isAlone = RANDOM.test(node.opType) || innerGraphs(node).length > 0 || !isStandard(node);
    if (isAlone || node.output.some((name) => outputs.has(name))) continue;
    const attributes = node.attribute.map((one) => [
      one.name,
      one.type,
      one.f,
      String(one.i),
      one.s && [...one.s],
      one.floats,
      one.ints.map(String),
      one.t?.name,
    ]);
    const key = JSON.stringify([node.opType, node.input, node.output.length, attributes.sort()]);
    const first = node.attribute.some(({ t, tensors, strings }) => t || tensors.length + strings.length > 0)
      ? undefined
      : firsts.get(key);
    if (first === undefined) firsts.set(key, node);
    else for (const [i, name] of node.output.entries()) renamed.set(name, first.output[i]!);
  }
  renameReads(graph, renamed);
}

/** Sizes of the inputs of a model, by the name of a dimension or of an input. */
export interface FixedShapes {
  /** Size of each dimension with a name, such as `{ batch: 1 }`. */
  readonly dimensions?: Readonly<Record<string, number>>;
  /** Whole shapes by the name of the input. */
  readonly inputs?: Readonly<Record<string, readonly number[]>>;
}

/**
 * Gives dimensions of a model fixed sizes, so that ONNX Runtime can plan its memory and compute shapes when it loads.
 *
 * @returns the names of the dimensions and inputs that have a size now
 * @throws RangeError for an unknown name, and a shape that contradicts the file
 */
export function fixShapes(model: OnnxModel, { dimensions = {}, inputs = {} }: FixedShapes): string[] {
  const { graph } = model.message;
  const sizes = new Map(Object.entries(dimensions));
  for (const [name, shape] of Object.entries(inputs)) {
    const dims = graph.input.find((one) => one.name === name)?.type?.tensorType?.shape?.dim;
    const known = graph.input.map((one) => one.name).join(", ");
    if (dims === undefined) throw new RangeError(`shape of input '${name}': expected one of ${known}`);
    const given = dims.map(({ dimValue, dimParam }) => dimParam || Number(dimValue ?? -1));
    const fits =
      dims.length === shape.length && shape.every((size, i) => !(Number(given[i]) >= 0) || given[i] === size);
    if (!fits) throw new RangeError(`shape of input '${name}': expected [${given}], got [${shape}]`);
    for (const [i, dim] of dims.entries()) {
      if (dim.dimParam) sizes.set(dim.dimParam, shape[i]!);
      delete dim.dimParam;
      dim.dimValue = shape[i]!;
    }
  }
  const seen = new Set<string>();
  for (const { type } of [...graph.input, ...graph.output]) {
    for (const dim of type?.tensorType?.shape?.dim ?? []) {
      const size = dim.dimParam === undefined ? undefined : sizes.get(dim.dimParam);
      if (size === undefined) continue;
      seen.add(dim.dimParam!);
      delete dim.dimParam;
      dim.dimValue = size;
    }
  }
  const unknown = Object.keys(dimensions).find((name) => !seen.has(name));
  if (unknown !== undefined) {
    const names = new Set(
      graph.input.flatMap(({ type }) => type?.tensorType?.shape?.dim ?? []).map(({ dimParam }) => dimParam),
    );
    const known = [...names].filter((name) => name).join(", ") || "none";
    throw new RangeError(`dimension '${unknown}': expected one of ${known}`);
  }
  graph.valueInfo = [];
  return [...seen, ...Object.keys(inputs)];
}
