import { type DataType, elementCount, shapeToString } from "@tritonjs/protocol";
import { invalidOption } from "../tool-errors.js";

/** Bytes of a tensor that each request replaces with new random values, so that no two requests carry equal data. */
interface FreshRange {
  /** Start in the bytes of the tensor. */
  readonly offset: number;
  readonly byteSize: number;
}

/** An input of a payload, with its batch axis. */
export interface PayloadTensor {
  readonly name: string;
  readonly datatype: DataType;
  readonly shape: readonly number[];
  /** Little-endian elements in row-major order; BYTES elements with their lengths. */
  readonly bytes: Uint8Array;
  /** Only in random data. */
  readonly fresh?: FreshRange;
}

/** An output that a response must have, byte by byte. */
export interface ExpectedOutput {
  readonly name: string;
  readonly datatype: DataType;
  readonly bytes: Uint8Array;
}

/** The tensors of one request. */
export interface TensorPayload {
  readonly inputs: readonly PayloadTensor[];
  readonly expected?: readonly ExpectedOutput[];
}

/** Payloads that are the steps of one sequence. */
export interface PayloadStream {
  /** Index of its first payload. */
  readonly first: number;
  readonly count: number;
}

/** Payloads of requests to a model. Request `n` carries payload `n` modulo their number. */
export interface TensorDataSet {
  readonly kind: "tensors";
  readonly payloads: readonly TensorPayload[];
  /** For sequence models: each sequence picks a stream. */
  readonly streams: readonly PayloadStream[];
  /** True when the steps come from the user, so that the length of a sequence is that of its stream. */
  readonly hasGivenSteps: boolean;
  /** Rows of each request. */
  readonly batchSize: number;
  /** When to send each payload, in milliseconds from the start. Only where the data has timestamps. */
  readonly timestampsMs?: readonly number[];
}

/** A conversation, or another sequence of requests that wait for each other. */
export interface Session {
  readonly id: string;
  readonly turns: readonly SessionTurn[];
}

export interface SessionTurn {
  /** Index of its payload. */
  readonly payload: number;
  /** Time from its answer to the next turn, in milliseconds. */
  readonly delayMs: number;
}

/** Payloads of requests to an OpenAI endpoint. */
export interface OpenAiDataSet {
  readonly kind: "openai";
  /** Bodies of requests: JSON text. */
  readonly payloads: readonly string[];
  readonly batchSize: 1;
  readonly timestampsMs?: readonly number[];
  /** The payloads as turns of sessions, in the order of their first turns. Only where the data was read with them. */
  readonly sessions?: readonly Session[];
}

export type DataSet = TensorDataSet | OpenAiDataSet;

/** Where the data of requests comes from. */
export interface DataOptions {
  /**
   * `"random"`, `"zero"`, or paths: one directory with a file for each input, or JSON files. @default "random"
   */
  readonly inputData?: "random" | "zero" | readonly string[];
  /** Shapes, without the batch axis, of inputs with variable dimensions. */
  readonly shapes?: Readonly<Record<string, readonly number[]>>;
  /** Rows of each request. @default 1 */
  readonly batchSize?: number;
  /** Characters of random strings. @default 128 */
  readonly stringLength?: number;
  /** Text of all string elements, instead of random text. */
  readonly stringData?: string;
  /** Seed of the random data. @default 0 */
  readonly seed?: number;
  /** Replaces some values before each request, so that no two requests carry equal random data. @default true */
  readonly freshData?: boolean;
  /** Reads `timestamp` of each entry of JSON files, which then is required. @default false */
  readonly fixedSchedule?: boolean;
  /** Reads `session_id` and `delay` of each entry with OpenAI requests. @default false */
  readonly sessions?: boolean;
}

/** Defaults of {@link DataOptions}. */
export const DATA_DEFAULTS = {
  batchSize: 1,
  /** perf_analyzer's. */
  stringLength: 128,
  /** Runs of one command are comparable. */
  seed: 0,
  /** Equal data would measure caches: the response cache of the server, and those of its CPU. */
  freshData: true,
} as const;

/** An input of the model that is measured. */
export interface TestedInput {
  readonly name: string;
  readonly datatype: DataType;
  /** Shape without the batch axis; -1 for a variable dimension. */
  readonly dims: readonly number[];
  readonly optional: boolean;
  /** Its values are shapes: it has no batch axis, and needs real data. */
  readonly isShapeTensor: boolean;
}

/** The properties of a model that its requests depend on. */
export interface TestedModel {
  readonly name: string;
  /** Empty for the version that the server chooses. */
  readonly version: string;
  /** Largest batch; 0 for a model without a batch axis. */
  readonly maxBatchSize: number;
  readonly decoupled: boolean;
  /** True for a model whose requests belong to sequences. */
  readonly isSequenceModel: boolean;
  readonly inputs: readonly TestedInput[];
  readonly outputs: readonly { readonly name: string; readonly datatype: DataType }[];
  /**
   * True where the server does not tell the configuration, so that the metadata of the v2 protocol has to do.
   * @default false
   */
  readonly isFromMetadata?: boolean;
  /** Names of the models of an ensemble, in the order of its steps. */
  readonly composingModels: readonly string[];
}

/** Shapes by input, as `--shape` gives them. */
export type GivenShapes = Readonly<Record<string, readonly number[]>>;

/**
 * Checks given shapes against the model.
 *
 * @throws TritonError INVALID_ARG for an unknown input, or a shape that does not match the input.
 */
export function checkShapes({ name: model, inputs }: TestedModel, shapes: GivenShapes): void {
  for (const [name, shape] of Object.entries(shapes)) {
    const input = inputs.find((one) => one.name === name);
    if (input === undefined) {
      const known = inputs.map((one) => `'${one.name}'`).join(", ");
      throw invalidOption(`--shape: expected an input of model '${model}' (${known}), got '${name}'`);
    }
    checkShape(input, shape, "--shape");
  }
}

export function checkShape({ name, dims }: TestedInput, shape: readonly number[], where: string): void {
  const fits =
    shape.length === dims.length &&
    shape.every((dim, i) => Number.isSafeInteger(dim) && (dims[i] === -1 ? dim >= 0 : dim === dims[i])) &&
    Number.isSafeInteger(elementCount(shape));
  if (!fits)
    throw invalidOption(
      `${where}: input '${name}': expected a shape that matches ${shapeToString(dims)}, got ${shapeToString(shape)}`,
    );
}

/** The shape of an input, from the options or the model; undefined when a dimension is open. */
export function knownShape(input: TestedInput, shapes: GivenShapes): readonly number[] | undefined {
  const given = Object.hasOwn(shapes, input.name) ? shapes[input.name] : undefined;
  if (given !== undefined) return given;
  return input.dims.includes(-1) ? undefined : input.dims;
}

/** A tensor of one row: its shape is without the batch axis. */
export interface StepTensor {
  readonly shape: readonly number[];
  readonly bytes: Uint8Array;
  readonly fresh?: FreshRange;
}

/** The data of one row. A request of `b` rows takes `b` steps in a row. */
export interface Step {
  readonly inputs: ReadonlyMap<string, StepTensor>;
  readonly expected?: readonly ExpectedOutput[];
  readonly timestampMs?: number;
  /** Place in the input, for messages: `data.json: entry 3`. */
  readonly where: string;
}

export interface Steps {
  /** Each list is the stream of a sequence. Models without sequences take the streams one after the other. */
  readonly streams: readonly (readonly Step[])[];
  /** False for generated data. */
  readonly areGiven: boolean;
}
