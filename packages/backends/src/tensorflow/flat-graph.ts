import { errorFor } from "@tritonjs/protocol";
import type {
  TfAttributeMessage,
  TfFunctionMessage,
  TfGraphMessage,
  TfNodeMessage,
} from "./graph-messages.js";

/*
 * TensorFlow 2 saves a signature as a call of a function that calls others, with variables beside. Here calls are replaced
 * by what they call, and variables by constants. Only the functions of loops and branches stay.
 */

/** A node whose inputs are written as in graphs: `node` or `node:1`. */
export interface FlatNode {
  readonly name: string;
  readonly op: string;
  readonly input: string[];
  readonly attr: Readonly<Record<string, TfAttributeMessage>>;
}

/** A function of a loop or branch. */
interface FlatFunction {
  readonly name: string;
  readonly inputs: readonly string[];
  readonly nodes: readonly FlatNode[];
  /** Results by name, in order. */
  readonly results: ReadonlyMap<string, string>;
}

export interface FlatGraph {
  readonly nodes: readonly FlatNode[];
  readonly functions: readonly FlatFunction[];
  /** Nodes that fill the tables. */
  readonly initializer: readonly FlatNode[];
  /** Nodes that stand for variables, with the names of the variables' nodes. */
  readonly variables: ReadonlyMap<string, string>;
  /** The outputs, as the nodes now write them. */
  readonly outputs: readonly string[];
}

/** Result of a node: a tensor as an input writes it, or the variable of a node. */
type Value = { readonly tensor: string } | { readonly variable: string };

/** Nodes of all functions, each as often as it is called. Graphs have some hundred thousands. */
const MOST_NODES = 2 ** 21;

/** Inputs that are followed from node to node. */
const MOST_STEPS = 2 ** 22;

/** Calls of functions within each other. TensorFlow makes a function for each layer of a model in a model. */
const MOST_CALLS = 64;

/** Where nodes are put: the graph, or the function of a loop or branch. */
interface Target {
  readonly nodes: FlatNode[];
  /** Names of the constants that stand for variables. */
  readonly variables: Set<string>;
}

/** A graph, or one call of a function. */
interface Scope {
  readonly prefix: string;
  /** Calls, loops and branches around it. */
  readonly depth: number;
  readonly nodes: ReadonlyMap<string, TfNodeMessage>;
  /** Values of a function's arguments. */
  readonly values: ReadonlyMap<string, Value>;
  readonly into: Target;
  /** Names of its nodes that are made. */
  readonly made: Set<string>;
  readonly calls: Map<TfNodeMessage, Scope>;
}

export const VARIABLES: ReadonlySet<string> = new Set(["VarHandleOp", "VariableV2", "Variable"]);
const CALLS: ReadonlySet<string> = new Set(["PartitionedCall", "StatefulPartitionedCall"]);
const LOOPS: ReadonlySet<string> = new Set(["While", "StatelessWhile"]);
const BRANCHES: ReadonlySet<string> = new Set(["If", "StatelessIf"]);
/** Operations that pass their only input on. */
const PASSING: ReadonlySet<string> = new Set([
  "Identity",
  "StopGradient",
  "PreventGradient",
  "CheckNumerics",
  "EnsureShape",
  "Snapshot",
]);
const TABLES: ReadonlySet<string> = new Set(["HashTable", "HashTableV2", "MutableHashTableV2"]);
const FILLING: ReadonlySet<string> = new Set(["LookupTableImport", "LookupTableImportV2"]);

/** Outputs of the operations that have several by name. In functions, inputs name them. */
const OUTPUTS: Readonly<Record<string, readonly string[]>> = {
  ...sameOutputs(["FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3"], "y batch_mean batch_variance"),
  ...sameOutputs(["TopK", "TopKV2"], "values indices"),
  ...sameOutputs(["Unique", "UniqueV2"], "y idx"),
  ...sameOutputs(["UniqueWithCounts"], "y idx count"),
  ...sameOutputs(["Switch"], "output_false output_true"),
  ...sameOutputs(["Merge"], "output value_index"),
  ...sameOutputs(["MaxPoolWithArgmax"], "output argmax"),
  ...sameOutputs(["NonMaxSuppressionV4"], "selected_indices valid_outputs"),
  ...sameOutputs(["NonMaxSuppressionV5"], "selected_indices selected_scores valid_outputs"),
  ...sameOutputs(
    ["SparseFillEmptyRows"],
    "output_indices output_values empty_row_indicator reverse_index_map",
  ),
  ...sameOutputs(["SparseReshape"], "output_indices output_shape"),
  ...sameOutputs(["TensorListPopBack"], "output_handle tensor"),
  ...sameOutputs(["TensorListConcatV2"], "tensor lengths"),
  ...sameOutputs(["TensorArrayV3"], "handle flow"),
  ...sameOutputs(["TensorArrayConcatV3"], "value lengths"),
  ...sameOutputs(["ListDiff"], "out idx"),
  ...sameOutputs(["StringSplit", "StringSplitV2"], "indices values shape"),
  ...sameOutputs(["RaggedRange"], "rt_nested_splits rt_dense_values"),
  ...sameOutputs(["StringNGrams"], "ngrams ngrams_splits"),
};

/** The place of the first tensor of an output. */
function firstPlace({ op, attr }: TfNodeMessage, output: string): number {
  // The splits before the values are as many as the tensor has ragged dimensions.
  if (op === "RaggedGather" && output === "output_dense_values")
    return Number(attr?.PARAMS_RAGGED_RANK?.i ?? 0);
  return Math.max(0, OUTPUTS[op]?.indexOf(output) ?? 0);
}

function sameOutputs(operations: readonly string[], names: string): Record<string, readonly string[]> {
  return Object.fromEntries(operations.map((operation) => [operation, names.split(" ")]));
}

/**
 * Flattens what some outputs need.
 *
 * @param outputs tensors of the graph: `node:0`
 * @param initializer name of the node that TensorFlow runs when it starts the model; empty for none
 * @param label the model in texts
 * @throws TritonError INVALID_ARG for a graph that refers to what it does not have, UNSUPPORTED for tables that are
 * filled from files.
 */
export function flatten(
  graph: TfGraphMessage,
  outputs: readonly string[],
  initializer: string,
  label: string,
): FlatGraph {
  return new Flattener(graph, label).flatten(outputs, initializer);
}

class Flattener {
  readonly #graph: TfGraphMessage;
  readonly #label: string;
  readonly #library: ReadonlyMap<string, TfFunctionMessage>;
  readonly #functions: FlatFunction[] = [];
  readonly #variables = new Map<string, string>();
  /** Operations of the tables in use, by the names of their nodes. */
  readonly #tables = new Map<string, string>();
  /** Values of the inputs of loops. */
  readonly #loops = new Map<TfNodeMessage, readonly Value[]>();
  /** Nodes whose inputs are still to be written. A list, because the nodes of a deep network would fill the stack. */
  readonly #waiting: [Scope, TfNodeMessage, FlatNode][] = [];
  #nodes = 0;
  #steps = 0;

  constructor(graph: TfGraphMessage, label: string) {
    this.#graph = graph;
    this.#label = label;
    const functions = graph.library?.function ?? [];
    this.#library = new Map(functions.map((one) => [one.signature.name, one]));
  }

  flatten(outputs: readonly string[], start: string): FlatGraph {
    const scope = this.#newScope("", this.#graph.node ?? [], new Map());
    const results = outputs.map((output) => this.#tensor(scope, this.#value(scope, output)));
    this.#writeInputs();
    const initializer = this.#tables.size === 0 ? [] : this.#fillTables(start);
    return {
      initializer,
      nodes: scope.into.nodes,
      functions: this.#functions,
      variables: this.#variables,
      outputs: results,
    };
  }

  /** The nodes with which the functions that TensorFlow calls at the start fill the tables in use. */
  #fillTables(start: string): readonly FlatNode[] {
    const scope = this.#newScope("", this.#graph.node ?? [], new Map());
    for (const input of scope.nodes.get(start)?.input ?? []) {
      const node = scope.nodes.get(input.replace(/^\^/, ""));
      const called = this.#library.get(node?.attr?.f?.func?.name ?? "");
      const inner = node && called && this.#scopeOf(scope, node, called);
      for (const filling of called?.nodeDef ?? []) if (FILLING.has(filling.op)) this.#make(inner!, filling);
    }
    this.#writeInputs();
    const { nodes } = scope.into;
    const filled = new Set(nodes.flatMap(({ op, input }) => (FILLING.has(op) ? input.slice(0, 1) : [])));
    for (const [name, op] of this.#tables) {
      if (filled.has(name)) continue;
      const text = `${this.#label}: node '${name}' has a table (${op}), which only TensorFlow can fill`;
      throw errorFor("MODEL_NOT_SUPPORTED", text);
    }
    return nodes;
  }

  #writeInputs(): void {
    for (let next = this.#waiting.pop(); next !== undefined; next = this.#waiting.pop()) {
      const [scope, node, flat] = next;
      for (const input of node.input ?? []) {
        if (!input.startsWith("^")) flat.input.push(this.#tensor(scope, this.#value(scope, input)));
      }
    }
  }

  /** The value that an input refers to. */
  #value(scope: Scope, start: string): Value {
    let input = start;
    for (let passed = 0; ; passed++) {
      if (passed > scope.nodes.size) throw this.#invalid(`node '${scope.prefix}${start}' passes on itself`);
      if (++this.#steps > MOST_STEPS)
        throw this.#invalid(`expected at most ${MOST_STEPS} steps between nodes`);
      const [name = "", second, third] = input.split(":");
      const given = scope.values.get(name);
      if (given !== undefined) return given;
      const node = scope.nodes.get(name);
      if (node === undefined)
        throw this.#invalid(`expected a node '${scope.prefix}${name}', which another one takes`);
      if (!PASSING.has(node.op)) return this.#resultAt(scope, node, second, third);
      input = node.input?.[0] ?? "";
    }
  }

  #resultAt(scope: Scope, node: TfNodeMessage, second?: string, third?: string): Value {
    const position = third === undefined ? Number(second ?? 0) : Number(third) + firstPlace(node, second!);
    return this.#resultOf(scope, node, position);
  }

  #resultOf(scope: Scope, node: TfNodeMessage, position: number): Value {
    const { op, name } = node;
    const inputs = node.input ?? [];
    if (VARIABLES.has(op)) return { variable: scope.prefix + name };
    if (TABLES.has(op)) this.#tables.set(scope.prefix + name, op);
    if (op === "ReadVariableOp") return { tensor: this.#tensor(scope, this.#value(scope, inputs[0] ?? "")) };
    const called = CALLS.has(op) ? node.attr?.f?.func?.name : op;
    const calledFunction = called === undefined ? undefined : this.#library.get(called);
    if (calledFunction !== undefined) return this.#resultOfCall(scope, node, calledFunction, position);
    if (CALLS.has(op))
      throw this.#invalid(`expected a function '${called}', which node '${scope.prefix}${name}' calls`);
    if (LOOPS.has(op)) return this.#resultOfLoop(scope, node, position);
    this.#make(scope, node);
    return { tensor: at(scope.prefix + name, position) };
  }

  #resultOfCall(scope: Scope, node: TfNodeMessage, called: TfFunctionMessage, position: number): Value {
    const inner = this.#scopeOf(scope, node, called);
    const output = called.signature.outputArg?.[position]?.name ?? "";
    const result = called.ret?.[output];
    if (result === undefined)
      throw this.#invalid(`expected an output ${position} of function '${called.signature.name}'`);
    return this.#value(inner, result);
  }

  #scopeOf(scope: Scope, node: TfNodeMessage, called: TfFunctionMessage): Scope {
    let inner = scope.calls.get(node);
    if (inner === undefined) {
      const data = (node.input ?? []).filter((input) => !input.startsWith("^"));
      const values = new Map<string, Value>();
      for (const [i, { name }] of (called.signature.inputArg ?? []).entries()) {
        values.set(name, this.#value(scope, data[i] ?? ""));
      }
      inner = {
        ...this.#newScope(`${scope.prefix}${node.name}/`, called.nodeDef ?? [], values, scope.depth + 1),
        into: scope.into,
      };
      scope.calls.set(node, inner);
    }
    return inner;
  }

  /** Variables that a loop passes on to its functions become constants there. */
  #resultOfLoop(scope: Scope, node: TfNodeMessage, position: number): Value {
    let values = this.#loops.get(node);
    const name = scope.prefix + node.name;
    if (values === undefined) {
      const inputs = (node.input ?? []).filter((input) => !input.startsWith("^"));
      values = inputs.map((input) => this.#value(scope, input));
      this.#loops.set(node, values);
      const [cond, body] = ["cond", "body"].map((part) => node.attr?.[part]?.func?.name ?? "");
      const attr = {
        ...node.attr,
        cond: { func: { name: this.#specialize(cond!, values, name, false, scope.depth) } },
        body: { func: { name: this.#specialize(body!, values, name, true, scope.depth) } },
      };
      const input = values.flatMap((value) => ("tensor" in value ? [value.tensor] : []));
      scope.into.nodes.push({ name, op: node.op, input, attr });
    }
    const value = values[position];
    if (value === undefined) throw this.#invalid(`expected an output ${position} of loop '${name}'`);
    if ("variable" in value) return value;
    const kept = values.slice(0, position).filter((one) => "tensor" in one).length;
    return { tensor: at(name, kept) };
  }

  #make(scope: Scope, node: TfNodeMessage): void {
    if (scope.made.has(node.name)) return;
    scope.made.add(node.name);
    const name = scope.prefix + node.name;
    if (node.op === "ResourceGather") {
      const axis: FlatNode = { name: `${name}/axis`, op: "Const", input: [], attr: ZERO };
      const gather: FlatNode = { name, op: "GatherV2", input: [], attr: node.attr ?? {} };
      scope.into.nodes.push(axis, gather);
      for (const input of node.input ?? []) gather.input.push(this.#tensor(scope, this.#value(scope, input)));
      gather.input.push(axis.name);
      return;
    }
    if (BRANCHES.has(node.op)) {
      this.#makeBranch(scope, node);
      return;
    }
    const flat: FlatNode = { name, op: node.op, input: [], attr: node.attr ?? {} };
    scope.into.nodes.push(flat);
    this.#waiting.push([scope, node, flat]);
  }

  #makeBranch(scope: Scope, node: TfNodeMessage): void {
    const name = scope.prefix + node.name;
    const [condition, ...values] = (node.input ?? [])
      .filter((input) => !input.startsWith("^"))
      .map((input) => this.#value(scope, input));
    const attr: Record<string, TfAttributeMessage> = { ...node.attr };
    for (const part of ["then_branch", "else_branch"]) {
      const chosen = node.attr?.[part]?.func?.name ?? "";
      attr[part] = { func: { name: this.#specialize(chosen, values, name, false, scope.depth) } };
    }
    const input = values.flatMap((value) => ("tensor" in value ? [value.tensor] : []));
    scope.into.nodes.push({ name, op: node.op, input: [this.#tensor(scope, condition!), ...input], attr });
  }

  /**
   * Makes a function in which the arguments that are variables are constants.
   *
   * @param passesOn whether its results are the arguments of the next round
   * @param depth calls, loops and branches around it
   */
  #specialize(
    name: string,
    values: readonly Value[],
    user: string,
    passesOn: boolean,
    depth: number,
  ): string {
    const called = this.#library.get(name);
    if (called === undefined)
      throw this.#invalid(`expected a function '${name}', which node '${user}' calls`);
    const unique = `${user}/${name}`;
    const given = new Map<string, Value>();
    const inputs: string[] = [];
    for (const [i, argument] of (called.signature.inputArg ?? []).entries()) {
      const value = values[i];
      const isVariable = value !== undefined && "variable" in value;
      given.set(argument.name, isVariable ? value : { tensor: argument.name });
      if (!isVariable) inputs.push(argument.name);
    }
    const scope = this.#newScope(`${unique}/`, called.nodeDef ?? [], given, depth + 1);
    const results = new Map<string, string>();
    for (const [i, { name: output }] of (called.signature.outputArg ?? []).entries()) {
      const value = values[i];
      if (passesOn && value !== undefined && "variable" in value) continue;
      results.set(output, this.#tensor(scope, this.#value(scope, called.ret?.[output] ?? "")));
    }
    this.#functions.push({ name: unique, inputs, nodes: scope.into.nodes, results });
    return unique;
  }

  /** A value as an input writes it. A variable becomes a constant of the graph that takes it. */
  #tensor(scope: Scope, value: Value): string {
    if ("tensor" in value) return value.tensor;
    const name = `variable:${value.variable}`.replaceAll(":", "/");
    if (!scope.into.variables.has(name)) {
      scope.into.variables.add(name);
      scope.into.nodes.push({ name, op: "Const", input: [], attr: {} });
      this.#variables.set(name, value.variable);
    }
    return name;
  }

  #newScope(
    prefix: string,
    nodes: readonly TfNodeMessage[],
    values: ReadonlyMap<string, Value>,
    depth = 0,
  ): Scope {
    if (depth > MOST_CALLS)
      throw this.#invalid(`expected at most ${MOST_CALLS} calls of functions within each other, got more`);
    this.#nodes += 1 + nodes.length;
    if (this.#nodes > MOST_NODES)
      throw this.#invalid(`expected at most ${MOST_NODES} nodes of all calls, got more`);
    const byName = new Map(nodes.map((node) => [node.name, node]));
    const into = { nodes: [], variables: new Set<string>() };
    return { prefix, depth, nodes: byName, values, into, made: new Set(), calls: new Map() };
  }

  #invalid(why: string) {
    return errorFor("INVALID_MODEL", `${this.#label} is not a whole graph: ${why}`);
  }
}

const ZERO: Readonly<Record<string, TfAttributeMessage>> = {
  dtype: { type: 3 },
  value: { tensor: { dtype: 3, tensorShape: {}, intVal: [0] } },
};

const at = (name: string, position: number): string => (position === 0 ? name : `${name}:${position}`);
