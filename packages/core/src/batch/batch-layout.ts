import {
  type DataType,
  elementCount,
  errorFor,
  fromConfigDataType,
  type ModelConfig,
  matchesShape,
  type Shape,
  sameShape,
  shapeToString,
  Tensor,
  TritonError,
  tensorFromValue,
  toNdArray,
} from "@tritonjs/protocol";
import type { BatchPadFunction, PadValue } from "../config/model-options.js";
import { concatFlat, concatRows, cutTo, elementOf, filled, padRows, sliceRows } from "../tensor-rows.js";
import { mergeInputs, splitOutputs, type Tensors } from "./batch-tensors.js";

type Join = (tensors: readonly Tensor[]) => Tensor;

interface MadeInput {
  readonly name: string;
  make(sources: readonly Tensor[]): Tensor;
  readonly sourceInput: string;
}

/**
 * Position of each request of a batch in the model's tensors, for models that take the batch as a whole:
 *
 * | input | in the batch |
 * |---|---|
 * | ordinary | rows below one another |
 * | padded | the same, after each is filled up to the longest |
 * | ragged (`allowRaggedBatch`) | the elements of all requests in one dimension |
 * | shape tensor | that of the first request: all have the same content |
 *
 * Batch inputs and masks, computed from the shapes of the others, are added to them.
 */
export class BatchLayout {
  /** Padding of the inputs, in the form that other threads can get. */
  readonly padding: PaddingRules | undefined;
  /** True if the batch only puts rows below one another. */
  readonly isPlain: boolean;
  readonly #joins = new Map<string, Join>();
  readonly #made: readonly MadeInput[];
  readonly #outputs: OutputLayout;
  readonly #pad: ((requests: readonly Tensors[]) => readonly Tensors[]) | undefined;

  /** @param padding absent for a model that pads nothing */
  constructor(config: ModelConfig, padding?: PaddingRules) {
    for (const { name, isShapeTensor, allowRaggedBatch, dataType } of config.input) {
      const value = padding?.values[name];
      if (isShapeTensor) this.#joins.set(name, (tensors) => tensors[0]!);
      else if (allowRaggedBatch) this.#joins.set(name, concatFlat);
      else if (value !== undefined) {
        const element = elementOf(value, fromConfigDataType(dataType)!, `padding of input '${name}'`);
        this.#joins.set(name, (tensors) => padRows(tensors, element));
      }
    }
    this.#made = [...batchInputs(config), ...masks(padding)];
    this.#outputs = new OutputLayout(config, padding);
    this.padding = padding && { values: padding.values, masks: padding.masks, cuts: padding.cuts };
    const pad = padding?.pad;
    this.#pad = pad && ((requests) => padByFunction(config, pad, requests));
    this.isPlain =
      this.#joins.size === 0 && this.#made.length === 0 && this.#outputs.isPlain && pad === undefined;
  }

  /**
   * Makes the inputs of a batch. The tensors of a single request are passed on as they are if nothing is computed from
   * them.
   *
   * @throws TritonError if a padding function fails, or the source of a computed input is missing.
   */
  merge(requests: readonly Tensors[]): Tensors {
    if (this.isPlain) return mergeInputs(requests);
    const padded = this.#pad?.(requests) ?? requests;
    const merged = new Map<string, Tensor>();
    for (const name of padded[0]!.keys()) {
      const join = this.#joins.get(name) ?? joinRows;
      merged.set(name, join(padded.map((inputs) => inputs.get(name)!)));
    }
    for (const { name, sourceInput, make } of this.#made) {
      merged.set(name, make(requests.map((inputs) => source(inputs, sourceInput, name))));
    }
    return merged;
  }

  split(outputs: Tensors, requests: readonly Tensors[], rows: readonly number[]): Tensors[] {
    return this.#outputs.split(outputs, requests, rows);
  }
}

function joinRows(tensors: readonly Tensor[]): Tensor {
  return tensors.length === 1 ? tensors[0]! : concatRows(tensors);
}

function batchInputs({ batchInput }: ModelConfig): MadeInput[] {
  return batchInput.flatMap(({ kind, dataType, sourceInput, targetName }) => {
    const datatype = fromConfigDataType(dataType) as "INT32" | "FP32";
    const make: MadeInput["make"] = (sources) =>
      makeBatchInput(
        kind,
        datatype,
        sources.map(({ shape }) => shape),
      );
    return targetName.map((name) => ({ name, sourceInput: sourceInput[0]!, make }));
  });
}

function masks(padding: PaddingRules | undefined): MadeInput[] {
  return (padding?.masks ?? []).map(({ name, datatype, sourceInput }) => {
    const of = (value: number) => elementOf(datatype === "BOOL" ? value === 1 : value, datatype, name);
    return {
      name,
      sourceInput,
      make: (sources) => maskOf(sources, datatype, of(1), of(0)),
    };
  });
}

function maskOf(
  sources: readonly Tensor[],
  datatype: DataType,
  one: number | bigint | Uint8Array,
  zero: number | bigint | Uint8Array,
): Tensor {
  return padRows(
    sources.map(({ shape }) => filled(datatype, shape, one)),
    zero,
  );
}

function source(inputs: Tensors, name: string, target: string): Tensor {
  const tensor = inputs.get(name);
  if (tensor !== undefined) return tensor;
  throw errorFor(
    "INVALID_INPUT",
    `cannot compute batch input '${target}': the request has no input '${name}'`,
  );
}

interface Part {
  readonly rows: number;
  /** First row of the request in the batch. */
  readonly start: number;
  readonly inputs: Tensors;
}

type Divide = (output: Tensor, parts: readonly Part[]) => readonly Tensor[];

class OutputLayout {
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
    return errorFor("INVALID_OUTPUT", `model '${this.#model}' returned output '${output}' with ${what}`);
  }
}

function byRows(output: Tensor, parts: readonly Part[]): Tensor[] {
  return parts.map(({ start, rows }) => (parts.length === 1 ? output : sliceRows(output, start, rows)));
}

/**
 * Makes a batch input: a tensor by which Triton tells a model where one request ends and the next begins.
 * `BatchInputSpec` lists the kinds.
 *
 * @param shapes shape of the source input in each request, with the batch axis, in batch order
 */
function makeBatchInput(kind: string, datatype: "INT32" | "FP32", shapes: readonly Shape[]): Tensor {
  const tensor = (shape: Shape, values: readonly number[]) =>
    Tensor.fromElements(
      datatype,
      shape,
      datatype === "INT32" ? Int32Array.from(values) : Float32Array.from(values),
    );
  const counts = shapes.map((shape) => elementCount(shape));
  switch (kind) {
    case "BATCH_ELEMENT_COUNT":
      return tensor([counts.length], counts);
    case "BATCH_ACCUMULATED_ELEMENT_COUNT":
      return tensor([counts.length], sums(counts));
    case "BATCH_ACCUMULATED_ELEMENT_COUNT_WITH_ZERO":
      return tensor([counts.length + 1], [0, ...sums(counts)]);
    case "BATCH_MAX_ELEMENT_COUNT_AS_SHAPE": {
      const longest = Math.max(...counts);
      return tensor([longest], new Array<number>(longest).fill(0));
    }
    case "BATCH_ITEM_SHAPE": {
      const items = itemShapes(shapes);
      return tensor([items.length, shapes[0]!.length - 1], items.flat());
    }
    case "BATCH_ITEM_SHAPE_FLATTEN": {
      const flat = itemShapes(shapes).flat();
      return tensor([flat.length], flat);
    }
    default:
      throw errorFor("INVALID_CONFIG", `unknown batch input kind '${kind}'`);
  }
}

function sums(counts: readonly number[]): number[] {
  let sum = 0;
  return counts.map((count) => {
    sum += count;
    return sum;
  });
}

/** The shape of each row, without the batch axis. */
function itemShapes(shapes: readonly Shape[]): Shape[] {
  return shapes.flatMap(([rows = 1, ...item]) => new Array<Shape>(rows).fill(item));
}

/** A mask input for a padded input: 1 for elements of the request, 0 for padding. */
export interface MaskInput {
  readonly name: string;
  readonly datatype: DataType;
  readonly sourceInput: string;
}

/** An output whose variable dimensions are cut back to those that an input had before padding. */
export interface CutOutput {
  readonly name: string;
  readonly sourceInput: string;
}

/** Rules that pad the requests of a batch to one shape, and cut their answers back. */
export interface PaddingRules {
  readonly values: Readonly<Record<string, PadValue>>;
  /** Pads instead of `values`. It cannot be sent to another thread. */
  readonly pad?: BatchPadFunction | undefined;
  readonly masks: readonly MaskInput[];
  readonly cuts: readonly CutOutput[];
}

/**
 * Pads the requests of a batch with the model's own function, and checks its result. It must return the same number of
 * requests, each with its inputs and rows, and all of one shape.
 *
 * @throws TritonError INTERNAL if the function throws or returns something else.
 */
function padByFunction(
  config: ModelConfig,
  pad: BatchPadFunction,
  requests: readonly Tensors[],
): readonly Tensors[] {
  const fault = (what: string, cause?: unknown): TritonError =>
    new TritonError("INTERNAL", `pad of model '${config.name}' ${what}`, { cause });
  const given = requests.map((inputs) =>
    Object.fromEntries(
      [...inputs].map(([name, tensor]) => [name, toNdArray(tensor, "input", name, config.name)]),
    ),
  );
  let padded: unknown;
  try {
    padded = pad(given as Parameters<BatchPadFunction>[0]);
  } catch (thrown) {
    throw fault(`threw an error: ${TritonError.from(thrown).message}`, thrown);
  }
  if (!Array.isArray(padded) || padded.length !== requests.length) {
    const got = Array.isArray(padded) ? `${padded.length} entries` : typeof padded;
    throw fault(
      `returned a wrong list: expected ${requests.length} entries, one for each request, got ${got}`,
    );
  }
  const first = new Map<string, Tensor>();
  return requests.map((inputs, i) => {
    const values = (padded as readonly (Readonly<Record<string, unknown>> | null | undefined)[])[i];
    const tensors = new Map<string, Tensor>();
    for (const [name, before] of inputs) {
      const { dims, dataType, isShapeTensor } = config.input.find((input) => input.name === name)!;
      const value = values?.[name];
      if (value === undefined) throw fault(`returned no input '${name}' for a request`);
      const rows = config.maxBatchSize > 0 && !isShapeTensor ? [before.shape[0]!] : [];
      const shape = [...rows, ...dims];
      const what = `input '${name}' from pad of model '${config.name}'`;
      let tensor: Tensor;
      try {
        tensor = tensorFromValue(value, { what, datatype: fromConfigDataType(dataType)!, shape });
      } catch (thrown) {
        throw fault(`returned a wrong ${TritonError.from(thrown).message}`, thrown);
      }
      const known = first.get(name) ?? tensor;
      first.set(name, known);
      if (!matchesShape(shape, tensor.shape) || !sameShape(known.shape, tensor.shape, rows.length)) {
        throw fault(
          `returned input '${name}' with shape ${shapeToString(tensor.shape)}, expected ` +
            `${shapeToString([...rows, ...known.shape.slice(rows.length)])}`,
        );
      }
      tensors.set(name, tensor);
    }
    return tensors;
  });
}
