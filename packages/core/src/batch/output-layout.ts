import {
  elementCount,
  type ModelConfig,
  type Shape,
  sameShape,
  shapeToString,
  type Tensor,
  TritonError,
} from "@tritonjs/protocol";

import { cutTo } from "../tensor/pad.js";

import { sliceRows } from "../tensor/slice.js";

import type { Tensors } from "./merge-inputs.js";
import type { PaddingRules } from "./padding-rules.js";
import { splitOutputs } from "./split-outputs.js";

/** One request: the properties that its part of an output depends on. */
interface Part {
  readonly rows: number;
  /** First row of the request in the batch. */
  readonly start: number;
  readonly inputs: Tensors;
}

type Divide = (output: Tensor, parts: readonly Part[]) => readonly Tensor[];

/** Splits the outputs of a batch among its requests. */
export class OutputLayout {
  /** True if each request gets its rows. */
  readonly isPlain: boolean;
  readonly #model: string;
  readonly #divides = new Map<string, Divide>();

  constructor(config: ModelConfig, padding: PaddingRules | undefined) {
    this.#model = config.name;
    const dimsOf = (name: string): Shape => {
      const dims = config.output.find((output) => output.name === name)?.dims ?? [];
      return config.maxBatchSize > 0 ? [-1, ...dims] : dims;
    };
    for (const { name, isShapeTensor } of config.output) {
      if (isShapeTensor) this.#divides.set(name, (output, parts) => parts.map(() => output));
    }
    for (const { targetName, sourceInput } of config.batchOutput) {
      for (const name of targetName) {
        const dims = dimsOf(name);
        this.#divides.set(name, (output, parts) => this.#scatter(name, dims, sourceInput[0]!, output, parts));
      }
    }
    for (const { name, sourceInput } of padding?.cuts ?? []) {
      const dims = dimsOf(name);
      this.#divides.set(name, (output, parts) => this.#cut(name, dims, sourceInput, output, parts));
    }
    this.isPlain = this.#divides.size === 0;
  }

  split(outputs: Tensors, requests: readonly Tensors[], rows: readonly number[]): Tensors[] {
    if (this.isPlain) return splitOutputs(outputs, rows);
    let start = 0;
    const parts = requests.map((inputs, i): Part => {
      const part = { inputs, rows: rows[i]!, start };
      start += part.rows;
      return part;
    });
    const split: Map<string, Tensor>[] = parts.map(() => new Map());
    for (const [name, output] of outputs) {
      const divided = (this.#divides.get(name) ?? byRows)(output, parts);
      divided.forEach((tensor, i) => void split[i]!.set(name, tensor));
    }
    return split;
  }

  /** Splits elements that follow each other; those of each request get the shape of its own input. */
  #scatter(name: string, dims: Shape, input: string, output: Tensor, parts: readonly Part[]): Tensor[] {
    const shapes = parts.map(({ inputs }) => this.#likeInput(name, dims, input, inputs));
    const counts = shapes.map((shape) => elementCount(shape));
    const expected = counts.reduce((sum, count) => sum + count, 0);
    const got = elementCount(output.shape);
    if (got !== expected) {
      throw this.#fault(
        `${got} elements, expected ${expected}, as the inputs '${input}' of the batch have`,
        name,
      );
    }
    const flat = output.reshaped([got]);
    let start = 0;
    return shapes.map((shape, i) => {
      const part = sliceRows(flat, start, counts[i]!).reshaped(shape);
      start += counts[i]!;
      return part;
    });
  }

  /** Splits rows, and removes the padding. */
  #cut(name: string, dims: Shape, input: string, output: Tensor, parts: readonly Part[]): Tensor[] {
    return parts.map(({ inputs, start, rows }) => {
      const mine = sliceRows(output, start, rows);
      const like = this.#likeInput(name, dims, input, inputs);
      const shape = [rows, ...like.slice(1)];
      if (sameShape(shape, mine.shape)) return mine;
      if (shape.some((dim, axis) => dim > mine.shape[axis]!)) {
        const text = `shape ${shapeToString(mine.shape)}, expected at least ${shapeToString(shape)}`;
        throw this.#fault(text, name);
      }
      return cutTo(mine, shape);
    });
  }

  /** The output's dimensions; variable ones are taken from the same dimensions of the input. */
  #likeInput(name: string, dims: Shape, input: string, inputs: Tensors): Shape {
    const tensor = inputs.get(input);
    if (tensor === undefined)
      throw this.#fault(`a shape that depends on input '${input}', which a request does not have`, name);
    return dims.map((dim, axis) => (dim === -1 ? (tensor.shape[axis] ?? 1) : dim));
  }

  #fault(what: string, output: string): TritonError {
    return new TritonError("INTERNAL", `model '${this.#model}' returned output '${output}' with ${what}`, {
      reason: "INVALID_OUTPUT",
    });
  }
}

function byRows(output: Tensor, parts: readonly Part[]): Tensor[] {
  return parts.map(({ start, rows }) => (parts.length === 1 ? output : sliceRows(output, start, rows)));
}
