import { closestName } from "./closest-name.js";
import type { DataType } from "./data-types.js";
import type { BytesArray, ValuesArray } from "./nd-array.js";
import type { OptionType } from "./option-types.js";
import { matchesShape, type Shape, shapeToString, type Tensor } from "./tensor.js";
import { type TensorValue, tensorFromValue } from "./tensor-from-value.js";
import { TritonError } from "./triton-error.js";

/** Triton's kinds of inputs that are computed from the shapes of another input, over all requests of a batch. */
export const BATCH_INPUT_KINDS = [
  "BATCH_ELEMENT_COUNT",
  "BATCH_ACCUMULATED_ELEMENT_COUNT",
  "BATCH_ACCUMULATED_ELEMENT_COUNT_WITH_ZERO",
  "BATCH_MAX_ELEMENT_COUNT_AS_SHAPE",
  "BATCH_ITEM_SHAPE",
  "BATCH_ITEM_SHAPE_FLATTEN",
] as const;

/** Triton's kinds of outputs that are split among the requests by the shapes of an input. */
export const BATCH_OUTPUT_KINDS = ["BATCH_SCATTER_WITH_INPUT_SHAPE"] as const;

/**
 * How an input is computed that clients do not send:
 *
 * | kind | shape in the batch | values |
 * |---|---|---|
 * | `BATCH_ELEMENT_COUNT` | [requests] | number of elements of the source in each request |
 * | `BATCH_ACCUMULATED_ELEMENT_COUNT` | [requests] | running total of these numbers |
 * | `BATCH_ACCUMULATED_ELEMENT_COUNT_WITH_ZERO` | [requests + 1] | 0, then the running total |
 * | `BATCH_MAX_ELEMENT_COUNT_AS_SHAPE` | [largest number of elements of a request] | 0 |
 * | `BATCH_ITEM_SHAPE` | [rows, rank] | shape of the source in each row, before padding |
 * | `BATCH_ITEM_SHAPE_FLATTEN` | [rows * rank] | the same |
 * | `PADDING_MASK` | as the padded source | 1 for an element of the request, 0 for padding |
 *
 * All kinds but the last are Triton's, and have data type INT32 or FP32.
 */
export interface BatchInputSpec {
  readonly kind: (typeof BATCH_INPUT_KINDS)[number] | "PADDING_MASK";
  readonly sourceInput: string;
}

/**
 * How an output is split among the requests of a batch. Its variable dimensions are those of an input of the request,
 * axis by axis.
 *
 * - `BATCH_SCATTER_WITH_INPUT_SHAPE` (Triton's): the model returns the elements of all requests one after another.
 * - `CUT_TO_INPUT_SHAPE`: the model returns rows of the length of the padded input. Each request gets back the length
 *   that it sent.
 */
export interface BatchOutputSpec {
  readonly kind: (typeof BATCH_OUTPUT_KINDS)[number] | "CUT_TO_INPUT_SHAPE";
  readonly sourceInput: string;
}

/**
 * One tensor of a model, as `bind` takes it.
 *
 * @example
 * ```ts
 * const spec: TensorSpec = { name: "tokens", dtype: "INT64", shape: [-1] };
 * ```
 */
export interface TensorSpec {
  readonly name: string;
  readonly dtype: DataType;
  /** Dimensions without the batch axis; -1 for any size. */
  readonly shape: Shape;
  /** Whether requests may leave this input out. Inputs only. */
  readonly optional?: boolean;
  /** Names of the classes that an output scores, for requests that ask for a classification. Outputs only. */
  readonly labels?: readonly string[];
  /**
   * Whether requests of one batch may have different shapes of this input. Code that takes the batch as a whole
   * (`batch`, a model file) gets the elements of all requests in one dimension. Inputs only.
   */
  readonly allowRaggedBatch?: boolean;
  /** Whether the tensor has no batch axis and must be equal, to the last element, in all requests of a batch. */
  readonly isShapeTensor?: boolean;
  /** Marks an input that is computed together with the batch, for code that takes the batch as a whole. */
  readonly batchInput?: BatchInputSpec;
  /** How the output of a whole batch is split, if not by rows. Outputs only. */
  readonly batchOutput?: BatchOutputSpec;
}

/** One tensor of a model, as its file describes it. */
export interface DescribedTensor extends TensorSpec {
  /** True if the file does not even fix the number of dimensions. `shape` is then empty. */
  readonly rankUnknown?: boolean;
}

type Optional<S extends TensorSpec> = S extends { readonly optional: true } ? S["name"] : never;
type Required<S extends TensorSpec> = S extends { readonly optional: true } ? never : S["name"];
type Named<S extends TensorSpec, N extends string> = Extract<S, { readonly name: N }>;

/** The ndarray type of a data type, which becomes JSON. That of `BYTES` also reads its elements as text and as JSON. */
export type ArrayOf<D extends DataType> = [D] extends ["BYTES"] ? BytesArray : ValuesArray<D>;

/** The ndarray type of one specification. */
export type NdArrayOf<S extends TensorSpec> = ArrayOf<S["dtype"]>;

/** Marks the specification of an input that a callback sees in a form other than an ndarray. */
export declare const seenAs: unique symbol;

/** Key under which the type of a handle holds the tensors of its model, for clients that are typed by it. It has no value. */
export declare const servedTensors: unique symbol;

/** Type in which a callback sees one input. */
export type InputOf<S extends TensorSpec> = S extends { readonly [seenAs]: infer V } ? V : NdArrayOf<S>;

/** Inputs of a callback: one ndarray for each input. Optional ones may be missing. */
export type InputsOf<I extends readonly TensorSpec[]> = {
  readonly [N in Required<I[number]>]: InputOf<Named<I[number], N>>;
} & {
  readonly [N in Optional<I[number]>]?: InputOf<Named<I[number], N>>;
};

/** Outputs of a callback: for each output an ndarray, a typed array that fills its shape, or nested arrays. */
export type OutputsOf<O extends readonly TensorSpec[]> = {
  readonly [N in O[number]["name"]]: TensorValue<Named<O[number], N>["dtype"]>;
};

/** Outputs of a callback as a list, in the order of the model's outputs. */
export type OutputList<O extends readonly TensorSpec[]> = {
  readonly [P in keyof O]: TensorValue<O[P]["dtype"]>;
};

/** Inputs that clients send. Computed inputs are left out. */
type Sent<S extends TensorSpec> = S extends { readonly batchInput: object } ? never : S;

/** Inputs of a call: for each input an ndarray, a typed array that fills its shape, or nested arrays. */
export type InputValuesOf<I extends readonly TensorSpec[]> = {
  readonly [N in Required<Sent<I[number]>>]: TensorValue<Named<I[number], N>["dtype"]>;
} & {
  readonly [N in Optional<Sent<I[number]>>]?: TensorValue<Named<I[number], N>["dtype"]>;
};

/** Result of a call: one ndarray for each output. */
export type ResultOf<O extends readonly TensorSpec[]> = {
  readonly [N in O[number]["name"]]: NdArrayOf<Named<O[number], N>>;
};

/** The sequence that a request belongs to. */
export interface RequestSequence {
  /** Triton's correlation id: a non-negative integer or a string. 0 and `""` mean no sequence. */
  readonly id: number | bigint | string;
  /** True for the first request of the sequence. @default false */
  readonly start?: boolean;
  /** True for the last request of the sequence. @default false */
  readonly end?: boolean;
}

/** Options of one inference, the same in process, in callbacks that call models, and in both clients. */
export interface InferOptions {
  /** Cancels the call when it aborts: the call rejects with CANCELLED, and the model is told to stop. */
  readonly signal?: AbortSignal;
  /**
   * Time limit of the whole call in milliseconds, including the time in queues and all attempts of a client. A call
   * that takes longer rejects with UNAVAILABLE, and `isTimeout` is true for the error. `Infinity` means no limit.
   *
   * @default no limit in process, 60000 in the clients
   */
  readonly timeoutMs?: number;
  /**
   * Time limit of the request in the queue of its model, in microseconds: Triton's request parameter `timeout`. It
   * takes effect if the queue policy of the model has `allowTimeoutOverride`. A request that waits longer rejects with
   * UNAVAILABLE, or is delayed if the policy demands it. 0 means the limit of the queue policy.
   *
   * @default 0
   */
  readonly queueTimeoutMicroseconds?: number;
  /** Priority level in the queue: 1 is the highest, 0 is the default level of the model. @default 0 */
  readonly priority?: number;
  /** The sequence of the request, for a model with `sequence`. @default no sequence */
  readonly sequence?: RequestSequence;
  /** Id of the request. It appears in errors and traces, the callback sees it, and a server returns it. @default "" */
  readonly id?: string;
  /** Parameters for the model. The clients refuse names that have a meaning in the protocol, with INVALID_ARG. */
  readonly parameters?: Parameters;
}

/** The types of the options of a call. Other code words the errors of those that are "any". */
export const INFER_OPTION_TYPES = {
  signal: "object",
  timeoutMs: "any",
  queueTimeoutMicroseconds: "number",
  priority: "number",
  sequence: "object",
  id: "string",
  parameters: "any",
} as const satisfies Record<keyof InferOptions, OptionType>;

/** Value of a request or response parameter. Integers outside the safe range are bigints. */
export type ParameterValue = string | number | bigint | boolean;

/** Named parameters of a request or a response. */
export type Parameters = Readonly<Record<string, ParameterValue>>;

/** No parameters. Shared, so that a request without parameters allocates nothing. */
export const NO_PARAMETERS: Parameters = Object.freeze({});

/** Names of request parameters that have a meaning in the protocol, besides those that begin with `triton_`. */
const RESERVED: ReadonlySet<string> = new Set([
  "sequence_id",
  "sequence_start",
  "sequence_end",
  "priority",
  "timeout",
  "headers",
  "binary_data_output",
]);

/** True for a name that the protocol reserves, so that users cannot give it to their parameters. */
export function isReservedParameter(name: string): boolean {
  return RESERVED.has(name) || name.startsWith("triton_");
}

/** An input of a model. */
export interface SignatureInput {
  readonly name: string;
  readonly datatype: DataType;
  /** Dimensions without the batch axis; -1 for any size. */
  readonly dims: readonly number[];
  readonly optional: boolean;
}

/** The description of a model that a client needs to check its inputs. */
export interface ModelSignature {
  readonly modelName: string;
  /** Largest number of rows in a batch; 0 for a model without a batch axis. */
  readonly maxBatchSize: number;
  /** Whether a request has any number of responses. Undefined if the server does not tell. */
  readonly decoupled: boolean | undefined;
  readonly inputs: ReadonlyMap<string, SignatureInput>;
}

/** Meaning of the batch axis: "given" with the values, or "added" to one sample and removed from its results. */
export type BatchAxis = "given" | "added";

/**
 * Converts values by input name to the tensors of a request. They are checked against the model before anything is
 * sent.
 *
 * @throws TritonError INVALID_ARG that names the faulty input.
 */
export function modelInputs(
  signature: ModelSignature,
  values: Readonly<Record<string, unknown>>,
  axis: BatchAxis,
): Record<string, Tensor> {
  const { modelName, maxBatchSize, inputs } = signature;
  if (axis === "given" && maxBatchSize === 0) {
    throw invalid(`model '${modelName}' does not support batching: use inferSample()`);
  }
  const given = new Map(Object.entries(values).filter(([, value]) => value !== undefined));
  checkNames(signature, given);
  const tensors: Record<string, Tensor> = Object.create(null);
  for (const [name, value] of given) {
    tensors[name] = inputTensor(signature, inputs.get(name)!, value, axis);
  }
  if (axis === "given") checkBatch(signature, tensors);
  return tensors;
}

function checkNames({ modelName, inputs }: ModelSignature, given: ReadonlyMap<string, unknown>): void {
  const fault = inputNamesFault(modelName, [...inputs.values()], [...given.keys()]);
  if (fault !== undefined) throw invalid(fault);
  if (given.size === 0) throw invalid(`model '${modelName}': expected at least one input, got none`);
}

function inputTensor(
  { modelName, maxBatchSize }: ModelSignature,
  { name, datatype, dims }: SignatureInput,
  value: unknown,
  axis: BatchAxis,
): Tensor {
  const what = `input '${name}' of model '${modelName}'`;
  const shape = axis === "given" ? [-1, ...dims] : dims;
  const tensor = tensorFromValue(value, { what, datatype, shape, takesScalar: true });
  const fault = inputShapeFault(what, dims, tensor.shape, maxBatchSize > 0 ? axis : "none");
  if (fault !== undefined) throw invalid(fault);
  return axis === "added" && maxBatchSize > 0 ? tensor.reshaped([1, ...tensor.shape]) : tensor;
}

function checkBatch(
  { modelName, maxBatchSize }: ModelSignature,
  tensors: Readonly<Record<string, Tensor>>,
): void {
  let first: [string, number] | undefined;
  for (const [name, { shape }] of Object.entries(tensors)) {
    const rows = shape[0]!;
    first ??= [name, rows];
    if (rows !== first[1]) {
      throw invalid(
        `inputs of model '${modelName}': expected equal batch sizes, got ${first[1]} of '${first[0]}' and ${rows} of '${name}'`,
      );
    }
  }
  if (first !== undefined && first[1] > maxBatchSize) {
    throw invalid(`batch of model '${modelName}': expected at most ${maxBatchSize} rows, got ${first[1]}`);
  }
}

function invalid(message: string): TritonError {
  return new TritonError("INVALID_ARG", message, { reason: "INVALID_INPUT" });
}

/** An input of a model, by which names are checked. */
export interface NamedInput {
  readonly name: string;
  readonly optional: boolean;
}

/** Describes the first input that the model lacks, or else the required inputs that are missing. */
export function inputNamesFault(
  modelName: string,
  inputs: readonly NamedInput[],
  given: readonly string[],
): string | undefined {
  const names = inputs.map(({ name }) => name);
  for (const name of given) {
    if (names.includes(name)) continue;
    const meant = closestName(name, names);
    const advice = meant === undefined ? `expected ${quoted(names)}` : `did you mean '${meant}'?`;
    return `model '${modelName}' has no input '${name}': ${advice}`;
  }
  const missing = inputs.filter(({ name, optional }) => !optional && !given.includes(name));
  return missing.length === 0
    ? undefined
    : `model '${modelName}': missing input ${quoted(missing.map(({ name }) => name))}`;
}

/** Role of the batch axis in the shapes of a call: given by the caller, added to one sample, or absent. */
export type ShapeAxis = "given" | "added" | "none";

/**
 * Describes an input whose shape does not fit, in the shapes that the caller knows: with the batch axis where the caller
 * gives it. Names the other method where that is what the caller means. Undefined for a shape that fits.
 *
 * @param what the input in the text: `input 'x' of model 'm'`
 * @param dims dimensions of the input without the batch axis; -1 for any size
 * @param shape shape that the caller gave
 */
export function inputShapeFault(
  what: string,
  dims: Shape,
  shape: Shape,
  axis: ShapeAxis,
): string | undefined {
  const expected = axis === "given" ? [-1, ...dims] : dims;
  if (matchesShape(expected, shape)) return undefined;
  const meaning = { given: " with the batch axis", added: " of one sample", none: "" }[axis];
  const text = `${what}: expected shape ${shapeToString(expected)}${meaning}, got ${shapeToString(shape)}`;
  if (axis === "given") {
    return matchesShape(dims, shape) ? `${text}: use inferSample() for one sample, or add the axis` : text;
  }
  if (!matchesShape([-1, ...dims], shape)) return text;
  return `${text}: ${axis === "added" ? "use inferBatch() for a batch" : "the model has no batch axis"}`;
}

function quoted(names: readonly string[]): string {
  return names.map((name) => `'${name}'`).join(", ");
}
