import { dropUnused, GraphEditor, makeNode } from "./graph-editor.js";
import { ELEMENT, type NodeMessage, type ValueMessage } from "./onnx-messages.js";
import type { OnnxModel } from "./onnx-model.js";

/** How the vectors of tokens become one vector: by the words of sentence-transformers. */
export type PoolingMode = "cls" | "mean" | "max" | "mean_sqrt_len" | "last";

/** How the scores of classes become shares. */
export type ScoreActivation = "softmax" | "sigmoid" | "none";

/** The vectors of tokens of a model, and what becomes of them. */
interface PoolingHead {
  /** Output with a vector for each token, `[rows, tokens, size]`. */
  readonly hidden: string;
  /** Input that is 0 for padding, `[rows, tokens]`. Without it, all tokens count. */
  readonly mask?: string;
  /** Several modes give several vectors, one behind the other. */
  readonly modes: readonly PoolingMode[];
  /** Whether vectors get length 1. */
  readonly normalize: boolean;
  /** Name of the new output. */
  readonly output: string;
}

/**
 * Makes one vector of the vectors of tokens. The model then has this output alone.
 *
 * @throws RangeError for a model without the output, or with another rank
 */
export function addPooling(model: OnnxModel, head: PoolingHead): void {
  const { graph } = model.message;
  const hidden = outputOf(model, head.hidden, 3);
  const build = new HeadBuilder(model);
  const values = build.float(hidden);
  const pooled = head.modes.map((mode) => build.pool(mode, values, head.mask));
  const joined = pooled.length === 1 ? pooled[0]! : build.node("Concat", pooled, { axis: -1 });
  build.end(head.normalize ? build.normalized(joined) : joined, head.output);
  const [rows = {}, , size = {}] = hidden.type?.tensorType?.shape?.dim ?? [];
  const width = size.dimValue === undefined ? {} : { dimValue: Number(size.dimValue) * pooled.length };
  graph.output = [floatValue(head.output, [rows, width])];
  dropUnused(graph);
}

/**
 * Makes shares of the scores of classes, along the last dimension. The model then has this output alone.
 *
 * @throws RangeError for a model without the output
 */
export function addScores(
  model: OnnxModel,
  scores: string,
  activation: ScoreActivation,
  output: string,
): void {
  const { graph } = model.message;
  const given = outputOf(model, scores);
  const build = new HeadBuilder(model);
  const values = build.float(given);
  if (activation === "none") build.end(values, output);
  else if (activation === "sigmoid") build.end(build.node("Sigmoid", [values]), output);
  else build.end(build.node("Softmax", [values], { axis: -1 }), output);
  graph.output = [floatValue(output, given.type?.tensorType?.shape?.dim ?? [])];
  dropUnused(graph);
}

type Dims = NonNullable<NonNullable<NonNullable<ValueMessage["type"]>["tensorType"]>["shape"]>["dim"];

const floatValue = (name: string, dim: Dims): ValueMessage => ({
  name,
  type: { tensorType: { elemType: ELEMENT.FLOAT, shape: { dim } } },
});

function outputOf(model: OnnxModel, name: string, rank?: number): ValueMessage {
  const { output } = model.message.graph;
  const found = output.find((one) => one.name === name);
  const known = output.map((one) => one.name).join(", ");
  if (found === undefined) throw new RangeError(`expected the output '${name}', got ${known}`);
  const { shape } = found.type?.tensorType ?? {};
  if (rank !== undefined && shape !== undefined && shape.dim.length !== rank)
    throw new RangeError(`output '${name}': expected ${rank} dimensions, got ${shape.dim.length}`);
  return found;
}

/** Adds nodes behind the last ones of a graph. */
class HeadBuilder {
  readonly #editor: GraphEditor;
  readonly #nodes: NodeMessage[] = [];
  readonly #opset: number;

  constructor(model: OnnxModel) {
    this.#editor = new GraphEditor(model, model.message.graph);
    this.#opset = model.opset();
  }

  node(
    opType: string,
    inputs: string[],
    attributes: Readonly<Record<string, number | readonly number[]>> = {},
  ): string {
    const output = this.#editor.fresh(`head_${opType}`);
    this.#nodes.push(makeNode(opType, inputs, [output], attributes));
    return output;
  }

  float({ name, type }: ValueMessage): string {
    return type?.tensorType?.elemType === ELEMENT.FLOAT ? name : this.#cast(name);
  }

  pool(mode: PoolingMode, values: string, mask: string | undefined): string {
    if (mode === "cls") return this.node("Gather", [values, this.#index(0)], { axis: 1 });
    if (mask === undefined) {
      if (mode === "max") return this.#reduce("ReduceMax", values, 18);
      if (mode === "last") return this.node("Gather", [values, this.#index(-1)], { axis: 1 });
      const mean = this.#reduce("ReduceMean", values, 18);
      if (mode === "mean") return mean;
      throw new RangeError("pooling by mean_sqrt_len: expected a model with a mask, got none");
    }
    const shares = this.#cast(mask);
    const count = this.#reduce("ReduceSum", shares, 13, 1);
    if (mode === "max") {
      const hidden = this.node("Mul", [this.node("Sub", [shares, this.#number(1)]), this.#number(1e9)]);
      return this.#reduce("ReduceMax", this.node("Add", [values, this.#column(hidden)]), 18);
    }
    if (mode === "last") {
      const place = this.node("CumSum", [shares, this.#index(1)]);
      const isLast = this.#cast(this.node("Equal", [place, count]));
      return this.#weighted(values, this.node("Mul", [isLast, shares]));
    }
    const sum = this.#weighted(values, shares);
    const least = this.node("Max", [count, this.#number(1e-9)]);
    return this.node("Div", [sum, mode === "mean" ? least : this.node("Sqrt", [least])]);
  }

  normalized(vector: string): string {
    const squares = this.node("Mul", [vector, vector]);
    const length = this.node("Sqrt", [this.#reduce("ReduceSum", squares, 13, 1)]);
    return this.node("Div", [vector, this.node("Max", [length, this.#number(1e-12)])]);
  }

  end(value: string, output: string): void {
    this.#nodes.push(makeNode("Identity", [value], [output]));
    this.#editor.surround([], this.#nodes);
    this.#editor.finish();
  }

  /** The sum of the rows of a matrix for each sample, each by its weight. */
  #weighted(values: string, weights: string): string {
    return this.#reduce("ReduceSum", this.node("Mul", [values, this.#column(weights)]), 13);
  }

  /** A number for each token as a column beside its vector. */
  #column(value: string): string {
    return this.#opset < 13
      ? this.node("Unsqueeze", [value], { axes: [2] })
      : this.node("Unsqueeze", [value, this.#axes(2)]);
  }

  /** @param since the operator set in which the axes became an input */
  #reduce(opType: string, value: string, since: number, keepdims = 0): string {
    return this.#opset < since
      ? this.node(opType, [value], { axes: [1], keepdims })
      : this.node(opType, [value, this.#axes(1)], { keepdims });
  }

  #cast(value: string): string {
    return this.node("Cast", [value], { to: ELEMENT.FLOAT });
  }

  #number(value: number): string {
    return this.#editor.add("head_number", [], Float32Array.of(value));
  }

  #axes(axis: number): string {
    return this.#editor.add("head_axes", [1], BigInt64Array.of(BigInt(axis)));
  }

  #index(value: number): string {
    return this.#editor.add("head_index", [], BigInt64Array.of(BigInt(value)));
  }
}
