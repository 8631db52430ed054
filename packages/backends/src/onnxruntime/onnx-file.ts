import { createHash } from "node:crypto";
import { closeSync, createReadStream, fstatSync, openSync, readSync } from "node:fs";
import { dirname, isAbsolute, join } from "node:path";
import { assertInside, isInside, linkedDirectories } from "@tritonjs/core/internal/worker";
import { errorFor, MOST_TENSORS } from "@tritonjs/protocol";

/** The model in error messages. */
export function modelLabel(model: string | Uint8Array): string {
  return typeof model === "string" ? `'${model}'` : "given as bytes";
}

export interface OnnxValue {
  readonly name: string;
  /**
   * Number in ONNX's `TensorProto.DataType`; 0 for a value that is not a tensor, undefined when the file leaves it out.
   */
  readonly elementType: number | undefined;
  /** All dimensions, -1 for a symbolic one; undefined when the file leaves the rank open. */
  readonly dims: readonly number[] | undefined;
}

/** The inputs and outputs that an ONNX file declares. */
export interface OnnxDescription {
  readonly inputs: readonly OnnxValue[];
  /** Inputs with a default, which is an initializer of the same name. */
  readonly optionalInputs: readonly OnnxValue[];
  readonly outputs: readonly OnnxValue[];
}

/** The field numbers of onnx.proto that this file reads. */
const MODEL = { graph: 7, functions: 25 };
const GRAPH = { node: 1, initializer: 5, input: 11, output: 12, sparseInitializer: 15 };
const FUNCTION = { node: 7 };
const NODE = { attribute: 5 };
const ATTRIBUTE = { tensor: 5, graph: 6, tensors: 10, graphs: 11, sparseTensor: 22, sparseTensors: 23 };
const SPARSE = { values: 1, indices: 2 };
const TENSOR = { name: 8, externalData: 13 };
const ENTRY = { key: 1, value: 2 };
const VALUE = { name: 1, type: 2 };
const TYPE = { tensor: 1 };
const TENSOR_TYPE = { element: 1, shape: 2 };
const SHAPE = { dim: 1 };
const DIM = { value: 1 };

/**
 * Reads the inputs and outputs of an ONNX model. Weights are not read.
 *
 * @throws errors of `fs` for a file that cannot be read, RangeError for bytes that are not an ONNX model.
 */
export function readOnnx(model: string | Uint8Array): OnnxDescription {
  const source = typeof model === "string" ? fileSource(model) : bytesSource(model);
  try {
    const graph = messages(source, 0, source.length, MODEL.graph)[0];
    if (graph === undefined) throw new RangeError("it has no graph");
    const parts = (field: number) => messages(source, graph.start, graph.end, field);
    const nameOf = (tensor: Span) => fieldText(source, tensor, TENSOR.name);
    const weights = new Set(parts(GRAPH.initializer).map(nameOf));
    const sparse = new Set(
      parts(GRAPH.sparseInitializer).flatMap(({ start, end }) =>
        messages(source, start, end, SPARSE.values).map(nameOf),
      ),
    );
    const values = (field: number) => parts(field).map((value) => readValue(source, value));
    const inputs = values(GRAPH.input).filter(({ name }) => !sparse.has(name));
    const outputs = values(GRAPH.output);
    const most = Math.max(inputs.filter(({ name }) => !weights.has(name)).length, outputs.length);
    if (most > MOST_TENSORS)
      throw new RangeError(`expected at most ${MOST_TENSORS} inputs, and outputs, got ${most}`);
    return {
      // Old files list all their weights among the inputs.
      inputs: inputs.filter(({ name }) => !weights.has(name)),
      optionalInputs: inputs.filter(({ name }) => weights.has(name)),
      outputs,
    };
  } finally {
    source.close();
  }
}

/** Place of a part of a file. */
export interface Span {
  readonly start: number;
  readonly end: number;
}

/** Nodes, tensors or names of one message. Graphs have some ten thousands. */
const MOST_MESSAGES = 2 ** 20;

/** Fields that are visited in a file. The nodes of the largest tree ensembles have ten million numbers. */
const MOST_FIELDS = 2 ** 25;

/** Bytes of a name, or of another text that is read. */
const LONGEST_TEXT = 4 << 20;

/** Dimensions of a tensor. Frameworks have at most 64. */
const MOST_DIMS = 1_024;

/** Files of weights of one model. Exporters write one for each tensor. */
const MOST_FILES = 16_384;

/** Fields of a message that have a number and are not integers. */
export function messages(source: ByteSource, start: number, end: number, number: number): Span[] {
  const found: Span[] = [];
  for (const field of walkMessage(source, start, end)) {
    if (field.number !== number || !("start" in field)) continue;
    if (found.length === MOST_MESSAGES)
      throw new RangeError(`expected at most ${MOST_MESSAGES} parts of a kind, got more`);
    found.push(field);
  }
  return found;
}

/** The first text of a message with a number; empty without one. */
export function fieldText(source: ByteSource, span: Span, number: number): string {
  for (const field of walkMessage(source, span.start, span.end)) {
    if (field.number === number && "start" in field) return textIn(source, field);
  }
  return "";
}

export function textIn(source: ByteSource, { start, end }: Span): string {
  if (end - start > LONGEST_TEXT)
    throw new RangeError(`expected a text of at most ${LONGEST_TEXT} bytes, got ${end - start}`);
  return new TextDecoder().decode(source.read(start, end - start));
}

function number(source: ByteSource, span: Span, wanted: number): number | undefined {
  for (const field of walkMessage(source, span.start, span.end)) {
    if (field.number === wanted && "value" in field) return field.value;
  }
  return undefined;
}

function readValue(source: ByteSource, value: Span): OnnxValue {
  const name = fieldText(source, value, VALUE.name);
  const type = messages(source, value.start, value.end, VALUE.type)[0];
  if (type === undefined) return { name, elementType: undefined, dims: undefined };
  const tensor = messages(source, type.start, type.end, TYPE.tensor)[0];
  if (tensor === undefined) return { name, elementType: 0, dims: undefined };
  const shape = messages(source, tensor.start, tensor.end, TENSOR_TYPE.shape)[0];
  const dims = shape && messages(source, shape.start, shape.end, SHAPE.dim);
  if (dims !== undefined && dims.length > MOST_DIMS)
    throw new RangeError(`tensor '${name}': expected at most ${MOST_DIMS} dimensions, got ${dims.length}`);
  return {
    name,
    elementType: number(source, tensor, TENSOR_TYPE.element) ?? 0,
    dims: dims?.map((dim) => {
      const size = number(source, dim, DIM.value) ?? -1;
      // Some exporters write -1, which reads as a huge number here.
      return Number.isSafeInteger(size) ? size : -1;
    }),
  };
}

const MAX_DEPTH = 64;

/**
 * Rejects an ONNX model that reads its weights from outside the model's directory. A model file may come from an
 * untrusted source, and may name any file of this machine.
 *
 * @param path the `.onnx` file
 * @param locations those of {@link externalLocations}
 * @param settings those of the backend, which may allow links to lead to further directories
 * @throws TritonError INVALID_ARG that names the file.
 */
export async function checkExternalData(
  directory: string,
  path: string,
  locations: Iterable<string>,
  settings: Readonly<Record<string, string>> = {},
): Promise<void> {
  for (const location of locations) {
    const file = join(dirname(path), location);
    if (isAbsolute(location) || !isInside(directory, file)) {
      const text = `external data of the ONNX model '${path}': expected a path inside the model's directory, got '${location}'`;
      throw errorFor("PATH_NOT_ALLOWED", text);
    }
    await assertInside(directory, file, linkedDirectories(settings));
  }
}

/** Files that the tensors of a model name. */
export function externalLocations(path: string): ReadonlySet<string> {
  const source = fileSource(path);
  try {
    const walk = new TensorWalk(source);
    walk.model();
    return walk.locations;
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    throw errorFor("INVALID_MODEL", `cannot read the ONNX model '${path}': ${error.message}`, {
      cause: error,
    });
  } finally {
    source.close();
  }
}

/** A hash of a model's file and of the files that its tensors name, as hexadecimal digits of SHA-256. */
export async function hashOfModel(path: string): Promise<string> {
  const hash = createHash("sha256");
  const add = async (file: string) => {
    for await (const piece of createReadStream(file, { highWaterMark: 1 << 20 }))
      hash.update(piece as Buffer);
  };
  await add(path);
  for (const location of [...externalLocations(path)].toSorted()) await add(join(dirname(path), location));
  return hash.digest("hex");
}

class TensorWalk {
  readonly locations = new Set<string>();

  constructor(private readonly source: ByteSource) {}

  model(): void {
    this.#each(
      { start: 0, end: this.source.length },
      {
        [MODEL.graph]: (graph) => this.#graph(graph, 0),
        [MODEL.functions]: (fn) => this.#each(fn, { [FUNCTION.node]: (node) => this.#node(node, 0) }),
      },
    );
  }

  #graph(graph: Span, depth: number): void {
    if (depth > MAX_DEPTH) throw new RangeError(`expected graphs nested at most ${MAX_DEPTH} deep, got more`);
    this.#each(graph, {
      [GRAPH.node]: (node) => this.#node(node, depth),
      [GRAPH.initializer]: (tensor) => this.#tensor(tensor),
      [GRAPH.sparseInitializer]: (sparse) => this.#sparse(sparse),
    });
  }

  #node(node: Span, depth: number): void {
    this.#each(node, { [NODE.attribute]: (attribute) => this.#attribute(attribute, depth) });
  }

  #attribute(attribute: Span, depth: number): void {
    this.#each(attribute, {
      [ATTRIBUTE.tensor]: (tensor) => this.#tensor(tensor),
      [ATTRIBUTE.tensors]: (tensor) => this.#tensor(tensor),
      [ATTRIBUTE.graph]: (graph) => this.#graph(graph, depth + 1),
      [ATTRIBUTE.graphs]: (graph) => this.#graph(graph, depth + 1),
      [ATTRIBUTE.sparseTensor]: (sparse) => this.#sparse(sparse),
      [ATTRIBUTE.sparseTensors]: (sparse) => this.#sparse(sparse),
    });
  }

  #sparse(sparse: Span): void {
    this.#each(sparse, {
      [SPARSE.values]: (tensor) => this.#tensor(tensor),
      [SPARSE.indices]: (tensor) => this.#tensor(tensor),
    });
  }

  #tensor(tensor: Span): void {
    this.#each(tensor, { [TENSOR.externalData]: (entry) => this.#entry(entry) });
  }

  #entry(entry: Span): void {
    const text: Record<number, string> = {};
    const read = (field: number) => (span: Span) => {
      text[field] = textIn(this.source, span);
    };
    this.#each(entry, { [ENTRY.key]: read(ENTRY.key), [ENTRY.value]: read(ENTRY.value) });
    if (text[ENTRY.key] === "location") this.locations.add(text[ENTRY.value] ?? "");
    if (this.locations.size > MOST_FILES)
      throw new RangeError(`expected at most ${MOST_FILES} files of external data, got more`);
  }

  #each(message: Span, visit: Readonly<Record<number, (span: Span) => void>>): void {
    for (const field of walkMessage(this.source, message.start, message.end)) {
      if ("start" in field) visit[field.number]?.(field);
    }
  }
}

/** One field of a protobuf message: a number, or the place of its bytes. */
type ProtobufField =
  | { readonly number: number; readonly value: number }
  | { readonly number: number; readonly start: number; readonly end: number };

/**
 * Walks over the fields of one protobuf message without reading their contents. A model of gigabytes costs as much as
 * its table of contents.
 *
 * @throws RangeError when the bytes are not a protobuf message.
 */
export function* walkMessage(source: ByteSource, start: number, end: number): Generator<ProtobufField> {
  let at = start;
  const varint = (): number => {
    let value = 0;
    let factor = 1;
    const bytes = source.read(at, Math.min(10, end - at));
    for (let i = 0; i < bytes.byteLength; i++) {
      value += (bytes[i]! & 0x7f) * factor;
      factor *= 128;
      if (bytes[i]! < 0x80) {
        at += i + 1;
        return value;
      }
    }
    throw new RangeError(`invalid number at byte ${at}`);
  };
  while (at < end) {
    if (++source.fields > MOST_FIELDS)
      throw new RangeError(`expected at most ${MOST_FIELDS} fields to visit, got more`);
    const tag = varint();
    const number = Math.floor(tag / 8);
    const wireType = tag % 8;
    if (number === 0) throw new RangeError(`invalid field at byte ${at}`);
    if (wireType === 0) {
      yield { number, value: varint() };
    } else {
      const length = wireType === 2 ? varint() : wireType === 1 ? 8 : wireType === 5 ? 4 : Number.NaN;
      if (!(at + length <= end)) throw new RangeError(`invalid length at byte ${at}`);
      const field = { number, start: at, end: at + length };
      at += length;
      if (wireType === 2) yield field;
    }
  }
}

/** Bytes with random access: an array, or a file that is only partly in memory. */
export interface ByteSource {
  readonly length: number;
  /** Fields that were visited so far. */
  fields: number;
  /** Bytes `[offset, offset + length)`; fewer at the end. Valid until the next call. */
  read(offset: number, length: number): Uint8Array;
  close(): void;
}

export function bytesSource(bytes: Uint8Array): ByteSource {
  return {
    length: bytes.byteLength,
    fields: 0,
    read: (offset, length) => bytes.subarray(offset, offset + length),
    close() {},
  };
}

const WINDOW_BYTES = 64 * 1024;

/** Source over a file, read through a window of 64 KiB. Throws what `fs` throws for a file that cannot be opened. */
export function fileSource(path: string): ByteSource {
  const file = openSync(path, "r");
  let window = new Uint8Array(0);
  let windowStart = 0;
  return {
    length: fstatSync(file).size,
    fields: 0,
    read(offset, length) {
      if (offset < windowStart || offset + length > windowStart + window.byteLength) {
        const buffer = new Uint8Array(Math.max(WINDOW_BYTES, length));
        window = buffer.subarray(0, readSync(file, buffer, 0, buffer.byteLength, offset));
        windowStart = offset;
      }
      return window.subarray(offset - windowStart, offset - windowStart + length);
    },
    close: () => closeSync(file),
  };
}
