import { readFile } from "node:fs/promises";
import {
  ANSWER_WORDS,
  type DataType,
  decodeBytes,
  elementByteSize,
  elementCount,
  parseAnswerJson,
  scanBytes,
  shapeToString,
  tensorFromValue,
} from "@tritonjs/protocol";
import { invalidOption } from "../command/tool-errors.js";

/** Bytes of a tensor that each request replaces with new random values, so that no two requests carry equal data. */
interface FreshRange {
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

function checkShape({ name, dims }: TestedInput, shape: readonly number[], where: string): void {
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

export interface StepRules {
  readonly model: TestedModel;
  readonly shapes: GivenShapes;
  readonly fixedSchedule: boolean;
}

type Entry = Readonly<Record<string, unknown>>;

/**
 * Reads `{"data": […], "validation_data": […]}`. Entries are rows of one stream, or lists of rows, a stream each.
 */
export async function stepsOfFile(path: string, rules: StepRules): Promise<(readonly Step[])[]> {
  const file = parseDataFile(await readFile(path, "utf8"), path);
  const { data, validation_data: validation } = (isEntry(file) ? file : {}) as Record<string, unknown>;
  if (!Array.isArray(data))
    throw invalidOption(`${path}: expected an object with a list "data", got ${textOf(file)}`);
  const streams = streamsOf(data, `${path}: data`);
  const expected =
    validation === undefined ? undefined : streamsOf(listOf(validation, path), `${path}: validation_data`);
  if (expected !== undefined && !haveEqualLengths(streams, expected))
    throw invalidOption(
      `${path}: validation_data: expected the streams and entries of data, got other numbers of them`,
    );
  const hasStreams = Array.isArray(data[0]);
  return streams.map((entries, stream) =>
    entries.map((entry, index) => {
      const where = `${path}: data${hasStreams ? `[${stream}]` : ""}[${index}]`;
      return stepOf(entry, expected?.[stream]?.[index], where, rules);
    }),
  );
}

function listOf(value: unknown, path: string): readonly unknown[] {
  if (Array.isArray(value)) return value;
  throw invalidOption(`${path}: validation_data: expected a list, got ${textOf(value)}`);
}

function streamsOf(entries: readonly unknown[], where: string): (readonly Entry[])[] {
  const lists = entries.filter(Array.isArray);
  if (lists.length > 0 && lists.length < entries.length)
    throw invalidOption(`${where}: expected entries that are all objects, or all lists of objects, got both`);
  const streams = lists.length > 0 ? (entries as readonly (readonly unknown[])[]) : [entries];
  return streams.map((stream) =>
    stream.map((entry, i) => {
      if (isEntry(entry)) return entry;
      throw invalidOption(`${where}[${i}]: expected an object, got ${textOf(entry)}`);
    }),
  );
}

const isEntry = (value: unknown): value is Entry =>
  typeof value === "object" && value !== null && !Array.isArray(value);

const haveEqualLengths = (a: readonly (readonly unknown[])[], b: readonly (readonly unknown[])[]): boolean =>
  a.length === b.length && a.every((stream, i) => stream.length === b[i]!.length);

function stepOf(entry: Entry, validation: Entry | undefined, where: string, rules: StepRules): Step {
  const { model, shapes, fixedSchedule } = rules;
  const { timestamp, ...tensors } =
    Object.hasOwn(entry, "timestamp") && !isInput(model, "timestamp")
      ? entry
      : { ...entry, timestamp: undefined };
  const unknown = Object.keys(tensors).find((name) => !isInput(model, name));
  if (unknown !== undefined)
    throw invalidOption(
      `${where}: expected inputs of model '${model.name}' (${namesOf(model)}), got '${unknown}'`,
    );
  const inputs = model.inputs.flatMap((input) => {
    if (Object.hasOwn(tensors, input.name))
      return [[input.name, readInput(input, tensors[input.name], shapes, where)] as const];
    if (input.optional) return [];
    throw invalidOption(
      `${where}: expected data for input '${input.name}' of model '${model.name}', got none`,
    );
  });
  return {
    inputs: new Map(inputs),
    expected: validation && expectedOf(validation, where.replace(": data", ": validation_data"), model),
    timestampMs: fixedSchedule ? timestampOf(timestamp, where) : undefined,
    where,
  };
}

const isInput = ({ inputs }: TestedModel, name: string): boolean =>
  inputs.some((input) => input.name === name);

const namesOf = ({ inputs }: TestedModel): string => inputs.map(({ name }) => `'${name}'`).join(", ");

function expectedOf(validation: Entry, where: string, model: TestedModel): readonly ExpectedOutput[] {
  return Object.entries(validation).map(([name, value]) => {
    const output = model.outputs.find((one) => one.name === name);
    if (output === undefined) {
      const known = model.outputs.map((one) => `'${one.name}'`).join(", ");
      throw invalidOption(`${where}: expected outputs of model '${model.name}' (${known}), got '${name}'`);
    }
    return { ...output, bytes: readOutput(output.datatype, value, `${where}: output '${name}'`) };
  });
}

/** The time of an entry: `[12.5]` or `12.5`, in milliseconds. */
export function timestampOf(value: unknown, where: string): number {
  const time = Array.isArray(value) && value.length === 1 ? value[0] : value;
  if (typeof time === "number" && Number.isFinite(time) && time >= 0) return time;
  throw invalidOption(`${where}: "timestamp": expected milliseconds from the start, got ${textOf(value)}`);
}

/** Words that files of input data for Triton's tools may have. */
const DATA_WORDS = { ...ANSWER_WORDS, "-NaN": Number.NaN };

/**
 * Parses JSON with the numbers that files of input data may have beyond it: `NaN`, `Infinity`, `Inf`, and whole numbers
 * of any length, which become bigints.
 */
function parseDataFile(text: string, file: string): unknown {
  try {
    return parseAnswerJson(text, DATA_WORDS);
  } catch (cause) {
    throw invalidOption(`${file}: expected JSON: ${(cause as Error).message}`, cause);
  }
}

interface WrittenTensor {
  readonly content?: unknown;
  readonly b64?: unknown;
  readonly shape?: unknown;
}

/** Reads an input from a JSON value: a list of elements, `{"b64": …}`, or `{"content": …, "shape": […]}`. */
function readInput(input: TestedInput, value: unknown, shapes: GivenShapes, where: string): StepTensor {
  const what = `${where}: input '${input.name}'`;
  const { content, shape } = partsOf(value, what);
  if (shape !== undefined) checkShape(input, shape, where);
  const known = shape ?? knownShape(input, shapes);
  const bytes = contentBytes(input.datatype, content, known ?? input.dims, what);
  return { shape: known ?? deduced(input, bytes, what), bytes };
}

function readOutput(datatype: DataType, value: unknown, what: string): Uint8Array {
  const { content, shape } = partsOf(value, what);
  return contentBytes(datatype, content, shape ?? [-1], what);
}

/** Checks the bytes of a tensor, from base64 text or a file. */
export function checkedBytes(
  datatype: DataType,
  bytes: Uint8Array,
  shape: readonly number[],
  what: string,
): Uint8Array {
  const open = shape.includes(-1);
  if (datatype === "BYTES") {
    const { elements, truncated, lengthBytesLeft } = scanBytes(bytes, Number.MAX_SAFE_INTEGER);
    if (truncated !== undefined || lengthBytesLeft !== undefined)
      throw invalidOption(
        `${what}: expected elements, each after its length in 4 bytes, got ${bytes.length} other bytes`,
      );
    if (!open && elements !== elementCount(shape))
      throw invalidOption(
        `${what}: expected ${elementCount(shape)} elements for shape ${shapeToString(shape)}, got ${elements}`,
      );
    return bytes;
  }
  const size = elementByteSize(datatype);
  const expected = open ? undefined : elementCount(shape) * size;
  if (expected === undefined ? bytes.length % size !== 0 : bytes.length !== expected)
    throw invalidOption(
      `${what}: expected ${expected ?? `a multiple of ${size}`} bytes for ${datatype} of shape ${shapeToString(shape)}, ` +
        `got ${bytes.length}`,
    );
  return bytes;
}

/** The shape of an input with one open dimension, from the number of its elements. */
export function deduced({ datatype, dims }: TestedInput, bytes: Uint8Array, what: string): readonly number[] {
  const count = datatype === "BYTES" ? decodeBytes(bytes).length : bytes.length / elementByteSize(datatype);
  const known = dims.filter((dim) => dim !== -1).reduce((product, dim) => product * dim, 1);
  if (dims.filter((dim) => dim === -1).length === 1 && known > 0 && count % known === 0)
    return dims.map((dim) => (dim === -1 ? count / known : dim));
  throw invalidOption(
    `${what}: expected a shape for the variable shape ${shapeToString(dims)}, by --shape or the member "shape", got none`,
  );
}

function partsOf(
  value: unknown,
  what: string,
): { readonly content: unknown; readonly shape?: readonly number[] } {
  if (Array.isArray(value)) return { content: value };
  if (typeof value !== "object" || value === null)
    throw invalidOption(
      `${what}: expected a list of elements, or an object with "content" or "b64", got ${textOf(value)}`,
    );
  const { content, b64, shape } = value as WrittenTensor;
  if (b64 !== undefined) return { content: { b64 }, shape: shapeOf(shape, what) };
  if (content === undefined)
    throw invalidOption(`${what}: expected a member "content" or "b64", got ${textOf(Object.keys(value))}`);
  return { content, shape: shapeOf(shape, what) };
}

function shapeOf(shape: unknown, what: string): readonly number[] | undefined {
  if (shape === undefined) return undefined;
  if (Array.isArray(shape) && shape.every((dim) => Number.isSafeInteger(dim) && dim >= 0))
    return shape as number[];
  throw invalidOption(`${what}: "shape": expected a list of whole numbers, got ${textOf(shape)}`);
}

function contentBytes(
  datatype: DataType,
  content: unknown,
  shape: readonly number[],
  what: string,
): Uint8Array {
  if (Array.isArray(content)) {
    // Elements are in row-major order, whether nested or not.
    const { bytes } = tensorFromValue(content.flat(Number.POSITIVE_INFINITY), {
      what,
      datatype,
      shape: [-1],
    });
    return checkedBytes(datatype, bytes, shape, what);
  }
  const { b64 } = (content ?? {}) as WrittenTensor;
  if (typeof b64 !== "string")
    throw invalidOption(
      `${what}: expected a list of elements, or base64 text as "b64", got ${textOf(content)}`,
    );
  const bytes = Buffer.from(b64, "base64");
  if (bytes.toString("base64").replace(/=+$/, "") !== b64.replace(/\s/g, "").replace(/=+$/, ""))
    throw invalidOption(`${what}: "b64": expected base64 text, got ${textOf(b64)}`);
  return checkedBytes(datatype, new Uint8Array(bytes), shape, what);
}

export function textOf(value: unknown): string {
  const text = JSON.stringify(value) ?? String(value);
  return text.length > 60 ? `${text.slice(0, 60)}…` : text;
}
