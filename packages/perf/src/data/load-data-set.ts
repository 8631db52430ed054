import { readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import {
  type DataType,
  elementByteSize,
  elementCount,
  encodeBytes,
  sameShape,
  shapeToString,
} from "@tritonjs/protocol";
import { invalidOption } from "../command/tool-errors.js";
import {
  checkedBytes,
  checkShapes,
  DATA_DEFAULTS,
  type DataOptions,
  deduced,
  type GivenShapes,
  knownShape,
  type OpenAiDataSet,
  type PayloadStream,
  type PayloadTensor,
  type Session,
  type SessionTurn,
  type Step,
  type StepRules,
  type Steps,
  type StepTensor,
  stepsOfFile,
  type TensorDataSet,
  type TensorPayload,
  type TestedInput,
  type TestedModel,
  textOf,
  timestampOf,
} from "./data-set.js";
import { Random, randomElements, unitByteSize } from "./random.js";

/**
 * Makes the payloads of requests to a model.
 *
 * @throws TritonError INVALID_ARG that names the file, the entry and the input, with what was expected and what was
 * found.
 */
export async function loadDataSet(model: TestedModel, options: DataOptions = {}): Promise<TensorDataSet> {
  const { inputData = "random", shapes = {}, batchSize = DATA_DEFAULTS.batchSize } = options;
  checkShapes(model, shapes);
  const steps =
    inputData === "random" || inputData === "zero"
      ? generatedSteps(model, options, inputData)
      : await givenSteps(model, inputData, options);
  const set = payloadsOf(model, steps, batchSize);
  const freshData = options.freshData ?? DATA_DEFAULTS.freshData;
  return freshData ? set : { ...set, payloads: set.payloads.map(withoutFresh) };
}

function withoutFresh({ inputs, expected }: TensorPayload): TensorPayload {
  return { inputs: inputs.map(({ fresh: _, ...input }) => input), expected };
}

/** Reads rows from a directory, or from JSON files. */
async function givenSteps(
  model: TestedModel,
  paths: readonly string[],
  { shapes = {}, fixedSchedule = false }: DataOptions,
): Promise<Steps> {
  const streams: (readonly Step[])[] = [];
  const rules = { model, shapes, fixedSchedule };
  for (const path of paths) {
    const info = await stat(path).catch((cause: Error) => {
      throw invalidOption(
        `--input-data: expected a file or directory, cannot read '${path}': ${cause.message}`,
        cause,
      );
    });
    if (!info.isDirectory()) streams.push(...(await stepsOfFile(path, rules)));
    else if (paths.length > 1)
      throw invalidOption(`--input-data: expected one directory, got '${path}' among others`);
    else streams.push([await stepOfDirectory(path, rules)]);
  }
  if (streams.flat().length === 0)
    throw invalidOption(`--input-data: expected entries, got none in ${paths.join(", ")}`);
  return { streams: streams.filter((stream) => stream.length > 0), areGiven: true };
}

/**
 * Reads one row from files that have the names of the inputs: little-endian elements in row-major order, and for BYTES
 * a line of text for each element. Files with the names of outputs hold what responses must have.
 */
async function stepOfDirectory(path: string, { model, shapes }: StepRules): Promise<Step> {
  const inputs: Step["inputs"] extends ReadonlyMap<infer K, infer V> ? Map<K, V> : never = new Map();
  for (const input of model.inputs) {
    const file = join(path, input.name);
    const content = await readOptional(file);
    if (content === undefined && input.optional) continue;
    if (content === undefined)
      throw invalidOption(
        `${path}: expected a file '${input.name}' for the input of model '${model.name}', got none`,
      );
    const known = knownShape(input, shapes);
    const bytes = checkedBytes(input.datatype, bytesOf(input.datatype, content), known ?? input.dims, file);
    inputs.set(input.name, { shape: known ?? deduced(input, bytes, file), bytes });
  }
  const expected = [];
  for (const { name, datatype } of model.outputs) {
    const content = await readOptional(join(path, name));
    if (content !== undefined) expected.push({ name, datatype, bytes: bytesOf(datatype, content) });
  }
  return { inputs, expected: expected.length > 0 ? expected : undefined, where: path };
}

async function readOptional(file: string): Promise<Buffer | undefined> {
  try {
    return await readFile(file);
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw invalidOption(`cannot read '${file}': ${(cause as Error).message}`, cause);
  }
}

function bytesOf(datatype: DataType, content: Buffer): Uint8Array {
  if (datatype !== "BYTES") return new Uint8Array(content);
  const lines = content
    .toString("utf8")
    .replace(/\r?\n$/, "")
    .split(/\r?\n/);
  return encodeBytes(lines.map((line) => new TextEncoder().encode(line)));
}

/**
 * Memory for random rows, and most of them. Requests beyond them repeat rows with fresh values. Without fresh values all
 * requests carry the same rows.
 */
const ROWS_BYTES = 64 * 1024 * 1024;
const MOST_ROWS = 256;

/** Bytes that each request replaces: enough that data hardly ever repeats, at the cost of a short copy. */
const FRESH_BYTES = 64;

const LENGTH_BYTES = 4;

/** Rows of random values or zeros for all required inputs. */
function generatedSteps(model: TestedModel, options: DataOptions, kind: "random" | "zero"): Steps {
  const inputs = model.inputs.filter((input) => !input.optional);
  const shapes = inputs.map((input) => generatedShape(model, input, options.shapes ?? {}));
  const { stringLength = DATA_DEFAULTS.stringLength, stringData, seed = DATA_DEFAULTS.seed } = options;
  const random = new Random(seed);
  const elementBytes = ({ datatype }: TestedInput) =>
    datatype === "BYTES" ? stringLength + LENGTH_BYTES : elementByteSize(datatype);
  const rowBytes = inputs.reduce((sum, input, i) => sum + elementCount(shapes[i]!) * elementBytes(input), 1);
  const { batchSize = DATA_DEFAULTS.batchSize, freshData = DATA_DEFAULTS.freshData } = options;
  const mostRows = freshData ? Math.min(MOST_ROWS, Math.floor(ROWS_BYTES / rowBytes)) : batchSize;
  const rows = kind === "zero" ? 1 : Math.max(batchSize, mostRows);
  const tensor = (input: TestedInput, shape: readonly number[]): StepTensor => {
    const count = elementCount(shape);
    if (input.datatype === "BYTES") {
      const text = stringData === undefined ? undefined : new TextEncoder().encode(stringData);
      const strings = Array.from(
        { length: count },
        () => text ?? (kind === "zero" ? new Uint8Array() : randomElements("BYTES", stringLength, random)),
      );
      const isFresh = kind === "random" && text === undefined && count > 0;
      return withFresh({ shape, bytes: encodeBytes(strings) }, isFresh ? stringLength : 0, LENGTH_BYTES, 1);
    }
    if (kind === "zero") return { shape, bytes: new Uint8Array(count * elementByteSize(input.datatype)) };
    const bytes = randomElements(input.datatype, count, random);
    return withFresh({ shape, bytes }, bytes.length, 0, unitByteSize(input.datatype));
  };
  const step = (row: number): Step => ({
    inputs: new Map(inputs.map((input, i) => [input.name, tensor(input, shapes[i]!)])),
    where: `generated row ${row}`,
  });
  return { streams: [Array.from({ length: rows }, (_, row) => step(row))], areGiven: false };
}

function withFresh(tensor: StepTensor, available: number, offset: number, unit: number): StepTensor {
  const byteSize = Math.min(available, FRESH_BYTES);
  return byteSize < unit ? tensor : { ...tensor, fresh: { offset, byteSize: byteSize - (byteSize % unit) } };
}

function generatedShape(model: TestedModel, input: TestedInput, shapes: GivenShapes): readonly number[] {
  if (input.isShapeTensor)
    throw invalidOption(
      `input '${input.name}' of model '${model.name}' is a shape tensor: expected its values in --input-data, ` +
        "got generated data",
    );
  const shape = knownShape(input, shapes);
  if (shape === undefined)
    throw invalidOption(
      `input '${input.name}' of model '${model.name}' has the variable shape ${shapeToString(input.dims)}: expected ` +
        `its shape, as in --shape ${input.name}:${input.dims.map((dim) => (dim === -1 ? 1 : dim)).join(",")}`,
    );
  return shape;
}

/**
 * Joins rows to requests: request `n` takes `batchSize` rows from row `n * batchSize` on, and begins again after the
 * last row.
 */
function payloadsOf(model: TestedModel, { streams, areGiven }: Steps, batchSize: number): TensorDataSet {
  checkBatchSize(model, batchSize);
  const rows = streams.flat();
  const count = rows.length / greatestDivisor(rows.length, batchSize);
  const payloads = Array.from({ length: count }, (_, request) =>
    payloadOf(
      model,
      Array.from({ length: batchSize }, (_, row) => rows[(request * batchSize + row) % rows.length]!),
    ),
  );
  const ranges: PayloadStream[] = [];
  let first = 0;
  for (const stream of streams) {
    ranges.push({ first, count: stream.length });
    first += stream.length;
  }
  const timestampsMs = rows.every((row) => row.timestampMs !== undefined)
    ? rows.map((row) => row.timestampMs!)
    : undefined;
  return { kind: "tensors", payloads, streams: ranges, hasGivenSteps: areGiven, batchSize, timestampsMs };
}

function checkBatchSize({ name, maxBatchSize, isSequenceModel }: TestedModel, batchSize: number): void {
  if (!Number.isSafeInteger(batchSize) || batchSize < 1)
    throw invalidOption(`batch size: expected a whole number of at least 1, got ${batchSize}`);
  if (batchSize === 1) return;
  if (maxBatchSize === 0)
    throw invalidOption(
      `batch size: model '${name}' does not support batching: expected 1, got ${batchSize}`,
    );
  if (batchSize > maxBatchSize)
    throw invalidOption(
      `batch size: expected at most ${maxBatchSize}, the maximum of model '${name}', got ${batchSize}`,
    );
  if (isSequenceModel)
    throw invalidOption(`batch size: expected 1 for the sequence model '${name}', got ${batchSize}`);
}

function payloadOf(model: TestedModel, rows: readonly Step[]): TensorPayload {
  const inputs: PayloadTensor[] = [];
  for (const { name, datatype, isShapeTensor } of model.inputs) {
    const [first, ...others] = rows.map((row) => row.inputs.get(name));
    const missing = [first, ...others].indexOf(undefined);
    if (first === undefined && others.every((tensor) => tensor === undefined)) continue;
    if (missing >= 0)
      throw invalidOption(
        `${rows[missing]!.where}: input '${name}': expected data as in the other rows of its batch`,
      );
    const { shape, bytes, fresh } = first!;
    others.forEach((tensor, i) => {
      if (!sameShape(tensor!.shape, shape))
        throw invalidOption(
          `${rows[i + 1]!.where}: input '${name}': expected shape ${shapeToString(shape)} as in the other rows of its ` +
            `batch, got ${shapeToString(tensor!.shape)}`,
        );
      if (isShapeTensor && Buffer.compare(tensor!.bytes, bytes) !== 0)
        throw invalidOption(
          `${rows[i + 1]!.where}: input '${name}' is a shape tensor: expected equal values in all rows of a batch`,
        );
    });
    const hasBatchAxis = model.maxBatchSize > 0 && !isShapeTensor;
    inputs.push({
      name,
      datatype,
      shape: hasBatchAxis ? [rows.length, ...shape] : shape,
      bytes: hasBatchAxis && others.length > 0 ? joined([first!, ...others.map((one) => one!)]) : bytes,
      fresh,
    });
  }
  const expected = rows[0]!.expected?.map((output) => ({
    ...output,
    bytes:
      rows.length === 1
        ? output.bytes
        : joined(rows.map((row) => row.expected!.find((other) => other.name === output.name)!)),
  }));
  return { inputs, expected };
}

const joined = (parts: readonly { readonly bytes: Uint8Array }[]): Uint8Array =>
  Buffer.concat(parts.map((part) => part.bytes));

function greatestDivisor(a: number, b: number): number {
  return b === 0 ? a : greatestDivisor(b, a % b);
}

/**
 * Reads the bodies of OpenAI requests: `{"data": [{"payload": [{…}]}]}`, as perf_analyzer does.
 *
 * @param options `fixedSchedule`: each entry has a `timestamp`; `sessions`: each entry has a `session_id`
 * @throws TritonError INVALID_ARG that names the file and the entry.
 */
export async function loadOpenAiData(
  paths: readonly string[],
  {
    fixedSchedule = false,
    sessions = false,
  }: { readonly fixedSchedule?: boolean; readonly sessions?: boolean } = {},
): Promise<OpenAiDataSet> {
  const payloads: string[] = [];
  const timestampsMs: number[] = [];
  const reader = sessions ? new SessionReader() : undefined;
  for (const path of paths) {
    const { data } = parsed(await textOfFile(path), path);
    if (!Array.isArray(data)) throw invalidOption(`${path}: expected a list "data", got ${textOf(data)}`);
    // Entries in lists are those of one conversation, one after the other.
    data.flat().forEach((entry: unknown, i) => {
      const where = `${path}: data[${i}]`;
      const { payload, timestamp } = (entry ?? {}) as Record<string, unknown>;
      const bodies = Array.isArray(payload) ? payload : [payload];
      for (const body of bodies) {
        if (typeof body !== "object" || body === null || Array.isArray(body))
          throw invalidOption(
            `${where}: "payload": expected the body of a request in a list, got ${textOf(payload)}`,
          );
        reader?.add(entry as Record<string, unknown>, payloads.length, where);
        payloads.push(JSON.stringify(body));
        if (fixedSchedule) timestampsMs.push(timestampOf(timestamp, where));
      }
    });
  }
  if (payloads.length === 0)
    throw invalidOption(
      `--input-data: expected files with payloads of OpenAI requests, got ${paths.join(", ") || "none"}`,
    );
  return {
    kind: "openai",
    payloads,
    batchSize: 1,
    timestampsMs: fixedSchedule ? timestampsMs : undefined,
    ...(reader !== undefined && { sessions: reader.sessions }),
  };
}

async function textOfFile(path: string): Promise<string> {
  try {
    return await readFile(path, "utf8");
  } catch (cause) {
    throw invalidOption(
      `--input-data: expected a file, cannot read '${path}': ${(cause as Error).message}`,
      cause,
    );
  }
}

function parsed(text: string, path: string): { readonly data?: unknown } {
  try {
    return (JSON.parse(text) ?? {}) as { readonly data?: unknown };
  } catch (cause) {
    throw invalidOption(`${path}: expected JSON: ${(cause as Error).message}`, cause);
  }
}

class SessionReader {
  readonly #turns = new Map<string, SessionTurn[]>();

  get sessions(): Session[] {
    return [...this.#turns].map(([id, turns]) => ({ id, turns }));
  }

  /** Adds an entry of the data: `{"session_id": ["a"], "delay": [100], …}`. */
  add(entry: Readonly<Record<string, unknown>>, payload: number, where: string): void {
    const id = only(entry.session_id);
    if (typeof id !== "string" || id === "")
      throw invalidOption(
        `${where}: "session_id": expected the name of a session in a list, got ${textOf(entry.session_id)}`,
      );
    const delayMs = only(entry.delay) ?? 0;
    if (typeof delayMs !== "number" || !Number.isFinite(delayMs) || delayMs < 0)
      throw invalidOption(`${where}: "delay": expected milliseconds in a list, got ${textOf(entry.delay)}`);
    const turns = this.#turns.get(id) ?? [];
    turns.push({ payload, delayMs });
    this.#turns.set(id, turns);
  }
}

const only = (value: unknown): unknown => (Array.isArray(value) && value.length === 1 ? value[0] : value);
