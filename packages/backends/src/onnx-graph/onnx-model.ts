import { createHash, randomBytes } from "node:crypto";
import { closeSync, fstatSync, openSync, readSync } from "node:fs";
import { type FileHandle, mkdir, open, readFile, rename, rm, stat } from "node:fs/promises";
import { basename, dirname, isAbsolute, join, resolve } from "node:path";
import { assertInside, isInside } from "@tritonjs/core/internal/worker";
import { errorFor, float16ToFloat32, TritonError } from "@tritonjs/protocol";
import {
  decodeModel,
  ELEMENT,
  encodeModel,
  type GraphMessage,
  type ModelMessage,
  type NodeMessage,
  type TensorMessage,
} from "./onnx-messages.js";

/** A protobuf message may not be larger. Larger models keep their weights in files of external data. */
const LARGEST_MESSAGE = 2 ** 31 - 1;

/** Where the weights of a written model go. */
export interface WriteOptions {
  /**
   * Whether weights go into a file beside the model, `<model>-<hash>.data`.
   * @default only if the model would be larger than `limit`, or has external data already
   */
  readonly externalData?: boolean;
  /** Bytes from which weights go into a file of their own. @default 2 GiB - 64 MiB */
  readonly limit?: number;
}

/** A model of ONNX whose graph can be changed, with its weights in the file or beside it. */
export class OnnxModel {
  private constructor(
    readonly message: ModelMessage,
    /** Folder of the files of external data. */
    readonly folder: string | undefined,
    /** The model in texts. */
    readonly label: string,
    private readonly bytes: Uint8Array,
  ) {}

  /**
   * Reads a model. External data stays on the disk until it is needed.
   *
   * @throws TritonError NOT_FOUND for a missing file; INVALID_ARG for a file that is larger than 2 GB, is cut, or is not
   * an ONNX model, and for external data outside of the model's folder
   */
  static async read(path: string): Promise<OnnxModel> {
    const label = `'${path}'`;
    const found = await stat(path).catch((error: NodeJS.ErrnoException) => {
      const reason = error.code === "ENOENT" ? "FILE_NOT_READABLE" : "INVALID_MODEL";
      throw errorFor(reason, `cannot read the ONNX model ${label}: ${error.message}`, { cause: error });
    });
    if (!found.isFile()) {
      throw errorFor(
        "INVALID_MODEL",
        `cannot read the ONNX model ${label}: expected a file, got a directory`,
      );
    }
    if (found.size > LARGEST_MESSAGE) {
      const text =
        `cannot read the ONNX model ${label}: expected at most ${LARGEST_MESSAGE} bytes, got ${found.size}; protobuf ` +
        "ends there, so save the weights as external data: onnx.save(model, path, save_as_external_data=True)";
      throw errorFor("INVALID_MODEL", text);
    }
    const model = OnnxModel.decode(await readFile(path), label, dirname(resolve(path)));
    await model.#checkLocations();
    return model;
  }

  /** @param folder of the files of external data; a model without it must hold all weights */
  static decode(bytes: Uint8Array, label = "given as bytes", folder?: string): OnnxModel {
    return new OnnxModel(decodeModel(bytes, label), folder, label, bytes);
  }

  /** The same model, as it was read. */
  copy(): OnnxModel {
    return new OnnxModel(decodeModel(this.bytes, this.label), this.folder, this.label, this.bytes);
  }

  /** A model from which copies have the changes so far. */
  commit(): OnnxModel {
    return OnnxModel.decode(encodeModel(this.message), this.label, this.folder);
  }

  /** Version of an operator set; 0 if the model does not import it. */
  opset(domain = ""): number {
    const same = (one: string | undefined) => (one === "ai.onnx" ? "" : (one ?? "")) === domain;
    const found = this.message.opsetImport.find((one) => same(one.domain));
    return Number(found?.version ?? 0);
  }

  /** Bytes of the elements of all tensors of the main graph. */
  get weightBytes(): number {
    return this.message.graph.initializer.reduce((sum, tensor) => sum + tensorBytes(tensor), 0);
  }

  /**
   * The elements of a tensor as bytes, little-endian. Files of external data are read as far as the tensor.
   *
   * @throws TritonError INVALID_ARG for a tensor with other bytes than its shape needs
   */
  bytesOf(tensor: TensorMessage): Uint8Array {
    if (tensor.dataLocation === 1) return this.#external(tensor);
    return tensor.rawData !== undefined && tensor.rawData.byteLength > 0 ? tensor.rawData : listed(tensor);
  }

  /** The elements of a tensor of FLOAT or FLOAT16; undefined for another type. */
  floatsOf(tensor: TensorMessage): Float32Array | undefined {
    if (tensor.dataType === ELEMENT.FLOAT) {
      const bytes = this.bytesOf(tensor);
      this.#checkLength(tensor, bytes.byteLength);
      const aligned = bytes.byteOffset % 4 === 0 ? bytes : new Uint8Array(bytes);
      return new Float32Array(aligned.buffer, aligned.byteOffset, aligned.byteLength / 4);
    }
    if (tensor.dataType !== ELEMENT.FLOAT16) return undefined;
    const bytes = new Uint8Array(this.bytesOf(tensor));
    this.#checkLength(tensor, bytes.byteLength);
    return float16ToFloat32(new Uint16Array(bytes.buffer, bytes.byteOffset, bytes.byteLength / 2));
  }

  /** The model as bytes of one file. External data is read into it. */
  toBytes(): Uint8Array {
    for (const tensor of tensorsOf(this.message.graph)) this.#embed(tensor);
    return encodeModel(this.message);
  }

  /**
   * Writes the model so that an earlier file at the path is whole until the new one is complete.
   *
   * @returns bytes of all written files
   * @throws TritonError UNAVAILABLE with the path and the system's reason, for instance of a full disk
   */
  async write(path: string, options: WriteOptions = {}): Promise<number> {
    const { limit = LARGEST_MESSAGE - 2 ** 26 } = options;
    const tensors = [...tensorsOf(this.message.graph)];
    const hasExternal = tensors.some(({ dataLocation }) => dataLocation === 1);
    const size = tensors.reduce((sum, tensor) => sum + tensorBytes(tensor), 0);
    await mkdir(dirname(resolve(path)), { recursive: true });
    if (!(options.externalData ?? (hasExternal || size > limit))) {
      return replaceFile(path, [this.toBytes()]);
    }
    const moved = tensors.filter(
      (tensor) => tensor.dataType !== ELEMENT.STRING && tensorBytes(tensor) >= 1024,
    );
    for (const tensor of tensors) if (!moved.includes(tensor)) this.#embed(tensor);
    const name = `${basename(path)}-${this.#digest(moved)}.data`;
    const written = await replaceFile(join(dirname(path), name), this.#moveOut(moved, name));
    return written + (await replaceFile(path, [encodeModel(this.message)]));
  }

  #digest(tensors: readonly TensorMessage[]): string {
    const hash = createHash("sha256");
    for (const tensor of tensors) hash.update(tensor.name).update(this.bytesOf(tensor));
    return hash.digest("hex").slice(0, 12);
  }

  *#moveOut(tensors: readonly TensorMessage[], location: string): Generator<Uint8Array> {
    let offset = 0;
    for (const tensor of tensors) {
      const bytes = this.bytesOf(tensor);
      const padding = (ALIGNMENT - (offset % ALIGNMENT)) % ALIGNMENT;
      if (padding > 0) yield new Uint8Array(padding);
      offset += padding;
      yield bytes;
      clear(tensor);
      tensor.dataLocation = 1;
      tensor.externalData = Object.entries({ location, offset, length: bytes.byteLength }).map(
        ([key, value]) => ({
          key,
          value: String(value),
        }),
      );
      offset += bytes.byteLength;
    }
  }

  #embed(tensor: TensorMessage): void {
    if (tensor.dataLocation !== 1) return;
    const bytes = this.#external(tensor);
    clear(tensor);
    tensor.rawData = bytes;
  }

  #external(tensor: TensorMessage): Uint8Array {
    const { location, offset = 0, length = tensorBytes(tensor) } = placeOf(tensor);
    const what = `external data of tensor '${tensor.name}' of the ONNX model ${this.label}`;
    if (this.folder === undefined)
      throw errorFor("INVALID_MODEL", `${what}: expected a model in a file, got bytes`);
    try {
      const file = openSync(join(this.folder, location), "r");
      try {
        const { size } = fstatSync(file);
        if (offset + length > size) {
          throw errorFor(
            "INVALID_MODEL",
            `${what}: expected ${offset + length} bytes in '${location}', got ${size}`,
          );
        }
        const bytes = new Uint8Array(length);
        for (let at = 0; at < length; ) {
          const count = readSync(file, bytes, at, Math.min(length - at, 2 ** 30), offset + at);
          if (count === 0) throw errorFor("INVALID_MODEL", `${what}: '${location}' ended while it was read`);
          at += count;
        }
        return bytes;
      } finally {
        closeSync(file);
      }
    } catch (error) {
      if (TritonError.is(error)) throw error;
      throw errorFor("INVALID_MODEL", `${what}: ${(error as Error).message}`, { cause: error });
    }
  }

  /** Files of external data, as paths in the model's folder. */
  externalFiles(): ReadonlySet<string> {
    const locations = new Set<string>();
    for (const tensor of tensorsOf(this.message.graph)) {
      if (tensor.dataLocation === 1) locations.add(placeOf(tensor).location);
    }
    return locations;
  }

  async #checkLocations(): Promise<void> {
    for (const location of this.externalFiles()) {
      const file = join(this.folder!, location);
      if (isAbsolute(location) || !isInside(this.folder!, file)) {
        const text = `external data of the ONNX model ${this.label}: expected a path inside the model's directory, got '${location}'`;
        throw errorFor("PATH_NOT_ALLOWED", text);
      }
      await assertInside(this.folder!, file);
    }
  }

  #checkLength(tensor: TensorMessage, length: number): void {
    const expected = tensorBytes(tensor);
    if (length === expected) return;
    const text = `tensor '${tensor.name}' of the ONNX model ${this.label}: expected ${expected} bytes for the shape [${tensor.dims}], got ${length}`;
    throw errorFor("INVALID_MODEL", text);
  }
}

/** Tensors of external data begin at a multiple of it, so that they can be mapped. */
const ALIGNMENT = 4096;

function placeOf({ externalData, name }: TensorMessage): {
  location: string;
  offset?: number;
  length?: number;
} {
  const entries = Object.fromEntries(externalData.map(({ key, value }) => [key, value]));
  const number = (text: string | undefined) => (text === undefined ? undefined : Number(text));
  const place = {
    location: entries.location ?? "",
    offset: number(entries.offset),
    length: number(entries.length),
  };
  const isCount = (value: number | undefined) =>
    value === undefined || (Number.isSafeInteger(value) && value >= 0);
  if (place.location !== "" && isCount(place.offset) && isCount(place.length)) return place;
  const text = `external data of tensor '${name}': expected a location, an offset and a length, got ${JSON.stringify(entries)}`;
  throw errorFor("INVALID_MODEL", text);
}

function clear(tensor: TensorMessage): void {
  delete tensor.rawData;
  delete tensor.dataLocation;
  tensor.externalData = [];
  tensor.floatData = [];
  tensor.int32Data = [];
  tensor.int64Data = [];
  tensor.doubleData = [];
  tensor.uint64Data = [];
}

/** Bits of one element, by ONNX's number. */
const BITS: Readonly<Record<number, number>> = {
  [ELEMENT.FLOAT]: 32,
  [ELEMENT.UINT8]: 8,
  [ELEMENT.INT8]: 8,
  [ELEMENT.UINT16]: 16,
  [ELEMENT.INT16]: 16,
  [ELEMENT.INT32]: 32,
  [ELEMENT.INT64]: 64,
  [ELEMENT.BOOL]: 8,
  [ELEMENT.FLOAT16]: 16,
  [ELEMENT.DOUBLE]: 64,
  [ELEMENT.UINT32]: 32,
  [ELEMENT.UINT64]: 64,
  [ELEMENT.BFLOAT16]: 16,
  [ELEMENT.UINT4]: 4,
  [ELEMENT.INT4]: 4,
};

export const countOf = (dims: readonly (number | bigint)[]): number =>
  dims.reduce<number>((count, size) => count * Number(size), 1);

/** Bytes that the elements of a tensor take; for texts, those of the texts. */
export function tensorBytes({ dataType, dims, rawData, stringData }: TensorMessage): number {
  if (dataType === ELEMENT.STRING) return stringData.reduce((sum, text) => sum + text.byteLength, 0);
  const bits = BITS[dataType];
  return bits === undefined ? (rawData?.byteLength ?? 0) : Math.ceil((countOf(dims) * bits) / 8);
}

/** Elements that a file lists as numbers, as bytes. */
function listed(tensor: TensorMessage): Uint8Array {
  const { dataType, int32Data } = tensor;
  const array = () => {
    switch (dataType) {
      case ELEMENT.FLOAT:
        return Float32Array.from(tensor.floatData);
      case ELEMENT.DOUBLE:
        return Float64Array.from(tensor.doubleData);
      case ELEMENT.INT64:
        return BigInt64Array.from(tensor.int64Data, BigInt);
      case ELEMENT.UINT64:
        return BigUint64Array.from(tensor.uint64Data, BigInt);
      case ELEMENT.UINT32:
        return Uint32Array.from(tensor.uint64Data, Number);
      case ELEMENT.INT32:
        return Int32Array.from(int32Data);
      case ELEMENT.INT16:
      case ELEMENT.UINT16:
      case ELEMENT.FLOAT16:
      case ELEMENT.BFLOAT16:
        return Uint16Array.from(int32Data);
      default:
        return Uint8Array.from(int32Data);
    }
  };
  const { buffer } = array();
  return new Uint8Array(buffer);
}

/** All nodes of a graph and of the graphs inside. */
export function* nodesOf(graph: GraphMessage): Generator<NodeMessage> {
  for (const node of graph.node) {
    yield node;
    for (const inner of innerGraphs(node)) yield* nodesOf(inner);
  }
}

/** Graphs in the attributes of a node: branches of `If`, bodies of `Loop` and `Scan`. */
export function innerGraphs(node: NodeMessage): GraphMessage[] {
  return node.attribute.flatMap(({ g, graphs }) => [...(g ? [g] : []), ...graphs]);
}

/** All tensors of a graph: initializers, attributes, and those of the graphs inside. */
export function* tensorsOf(graph: GraphMessage): Generator<TensorMessage> {
  yield* graph.initializer;
  for (const node of graph.node) {
    for (const { t, tensors } of node.attribute) {
      if (t) yield t;
      yield* tensors;
    }
    for (const inner of innerGraphs(node)) yield* tensorsOf(inner);
  }
}

/**
 * Writes a file whole or not at all: under another name first, which then takes the place of the path.
 *
 * @returns the written bytes
 * @throws TritonError UNAVAILABLE with the path and the system's reason
 */
export async function replaceFile(path: string, parts: Iterable<Uint8Array | string>): Promise<number> {
  const draft = join(dirname(path), `.${basename(path)}.${randomBytes(4).toString("hex")}.part`);
  let file: FileHandle | undefined;
  try {
    file = await open(draft, "wx");
    let size = 0;
    for (const part of parts) {
      const bytes = typeof part === "string" ? Buffer.from(part) : part;
      for (let at = 0; at < bytes.byteLength; at += PIECE)
        await file.writeFile(bytes.subarray(at, at + PIECE));
      size += bytes.byteLength;
    }
    await file.sync();
    await file.close();
    file = undefined;
    await rename(draft, path);
    return size;
  } catch (error) {
    await file?.close().catch(() => {});
    await rm(draft, { force: true }).catch(() => {});
    if (TritonError.is(error)) throw error;
    const text = `cannot write '${path}': ${(error as Error).message}; a file that was there is unchanged`;
    throw errorFor("FILE_NOT_WRITTEN", text, { cause: error });
  }
}

/** Bytes of one write: Node refuses those of 2 GiB. */
const PIECE = 2 ** 30;
