import { closeSync, fstatSync, openSync, readFileSync, readSync, statSync } from "node:fs";
import { errorFor, FileMemory, TritonError } from "@tritonjs/protocol";
import { type BundleEntryMessage, decodeGraphMessage } from "./graph-messages.js";

/*
 * TensorFlow's checkpoints: `variables.index` is a table in LevelDB's format from names to places, and
 * `variables.data-00000-of-00001` has the tensors.
 */

/** A tensor of a checkpoint. */
interface SavedTensor {
  readonly dtype: number;
  readonly shape: readonly number[];
  readonly bytes: Uint8Array;
}

const FOOTER_BYTES = 48;
/** A block is followed by the number of its compression and a checksum. */
const TRAILER_BYTES = 5;
const SNAPPY = 1;
const MAGIC = 0xdb47_7524_8b80_fb57n;

/** A checkpoint: tensors by their keys. Their bytes are read when they are asked for. */
export class TensorBundle {
  readonly #prefix: string;
  readonly #entries = new Map<string, BundleEntryMessage>();
  readonly #shards: number;
  /** Bytes of the files that no variable has yet. */
  #left: number;

  /**
   * @param prefix path of the files without `.index`
   * @throws TritonError INVALID_ARG for files that cannot be read or are not a checkpoint.
   */
  constructor(prefix: string) {
    this.#prefix = prefix;
    const path = `${prefix}.index`;
    const entries = readTable(readWhole(path), path);
    const header = decodeGraphMessage("BundleHeader", entries.get("") ?? new Uint8Array(), `'${path}'`);
    if (header.endianness === 1)
      throw errorFor("MODEL_NOT_SUPPORTED", `'${path}': expected little-endian tensors, got big-endian ones`);
    this.#shards = header.numShards || 1;
    this.#left = 0;
    for (let shard = 0; shard < this.#shards; shard++) {
      const found = statSync(this.#pathOf(shard), { throwIfNoEntry: false });
      if (found === undefined && shard > 0) break;
      this.#left += found?.size ?? 0;
    }
    for (const [key, value] of entries) {
      if (key !== "")
        this.#entries.set(key, decodeGraphMessage("BundleEntry", value, `'${path}', entry '${key}'`));
    }
  }

  #pathOf(shard: number): string {
    return `${this.#prefix}.data-${padded(shard)}-of-${padded(this.#shards)}`;
  }

  keys(): Iterable<string> {
    return this.#entries.keys();
  }

  has(key: string): boolean {
    return this.#entries.has(key);
  }

  /** @throws TritonError INVALID_ARG for a tensor that is not there, or whose file is cut. */
  read(key: string): SavedTensor {
    const entry = this.#entries.get(key);
    const where = `variable '${key}' of the checkpoint '${this.#prefix}'`;
    if (entry === undefined) throw errorFor("INVALID_MODEL", `${where}: expected it in the index, got none`);
    if ((entry.slices?.length ?? 0) > 0)
      throw errorFor("MODEL_NOT_SUPPORTED", `${where} is stored in slices, which cannot be read here`);
    const { dtype = 0, shape, shardId = 0, offset = 0, size = 0 } = entry;
    const path = this.#pathOf(shardId);
    const bytes = readAt(path, offset, size);
    if (bytes.byteLength < size)
      throw errorFor(
        "INVALID_MODEL",
        `${where}: expected ${size} bytes in '${path}', got ${bytes.byteLength}`,
      );
    this.#left -= size;
    if (this.#left < 0)
      throw errorFor(
        "INVALID_MODEL",
        `${where}: expected bytes of its own in '${path}', got those of others`,
      );
    return { dtype, shape: (shape?.dim ?? []).map(({ size: dim = 0 }) => Number(dim)), bytes };
  }
}

const padded = (number: number): string => String(number).padStart(5, "0");

function readWhole(path: string): Uint8Array {
  try {
    return readFileSync(path);
  } catch (cause) {
    throw unreadable(path, cause);
  }
}

/** Bytes of a file; fewer at its end. */
function readAt(path: string, offset: number, size: number): Uint8Array {
  let file: number | undefined;
  try {
    file = openSync(path, "r");
    const bytes = new Uint8Array(Math.max(0, Math.min(size, fstatSync(file).size - offset)));
    for (let at = 0; at < bytes.byteLength; ) {
      const count = readSync(file, bytes, at, Math.min(bytes.byteLength - at, 2 ** 30), offset + at);
      if (count === 0) return bytes.subarray(0, at);
      at += count;
    }
    return bytes;
  } catch (cause) {
    throw unreadable(path, cause);
  } finally {
    if (file !== undefined) closeSync(file);
  }
}

function unreadable(path: string, cause: unknown): TritonError {
  const { code } = cause as NodeJS.ErrnoException;
  const why = code === "ENOENT" ? "it is missing" : TritonError.from(cause).message;
  return errorFor("INVALID_MODEL", `cannot read the variables '${path}': ${why}`, { cause });
}

/** Reads all entries of a table. */
function readTable(file: Uint8Array, path: string): Map<string, Uint8Array> {
  const fault = (why: string) =>
    errorFor("INVALID_MODEL", `'${path}' is not the index of a checkpoint: ${why}`);
  if (file.byteLength < FOOTER_BYTES) throw fault(`it has only ${file.byteLength} bytes`);
  const footer = new BlockReader(file, file.byteLength - FOOTER_BYTES, file.byteLength);
  const view = new DataView(file.buffer, file.byteOffset, file.byteLength);
  if (view.getBigUint64(file.byteLength - 8, true) !== MAGIC)
    throw fault("it does not end with a table's mark");
  const entries = new Map<string, Uint8Array>();
  const memory = new FileMemory(`'${path}'`);
  let left = file.byteLength;
  try {
    // The place of the block with filters, which bundles do not have.
    footer.varint();
    footer.varint();
    const index = blockAt(file, footer.varint(), footer.varint());
    for (const [, handle] of index) {
      const place = new BlockReader(handle, 0, handle.byteLength);
      for (const [key, value] of blockAt(file, place.varint(), place.varint())) entries.set(key, value);
    }
  } catch (error) {
    throw TritonError.is(error) ? error : fault((error as Error).message);
  }
  return entries;

  function blockAt(bytes: Uint8Array, offset: number, size: number): [string, Uint8Array][] {
    if (offset + size + TRAILER_BYTES > bytes.byteLength)
      throw fault(`a block ends at ${offset + size}, beyond it`);
    left -= size;
    if (left < 0) throw fault("its blocks overlap");
    const block = bytes.subarray(offset, offset + size);
    const compression = bytes[offset + size];
    if (compression === SNAPPY) return readBlock(uncompress(block), memory);
    if (compression !== 0) throw fault(`it has a block with the compression ${compression}`);
    return readBlock(block, memory);
  }
}

/** Reads the entries of a block. A key gives only what differs from the one before. */
function readBlock(block: Uint8Array, memory: FileMemory): [string, Uint8Array][] {
  const restarts = new DataView(block.buffer, block.byteOffset, block.byteLength).getUint32(
    block.byteLength - 4,
    true,
  );
  const end = block.byteLength - 4 * (restarts + 1);
  if (end < 0) throw new RangeError("a block is cut");
  const reader = new BlockReader(block, 0, end);
  const entries: [string, Uint8Array][] = [];
  let key = Buffer.alloc(0);
  while (!reader.isOver) {
    const shared = reader.varint();
    const fresh = reader.varint();
    const size = reader.varint();
    // A few bytes may repeat all of a long key.
    memory.countParts(2 + shared / 96);
    key = Buffer.concat([key.subarray(0, shared), reader.bytes(fresh)]);
    entries.push([key.toString("utf8"), reader.bytes(size)]);
  }
  return entries;
}

/** Times that Snappy makes a text shorter: three bytes are a copy of 64 at most. */
const MOST_SNAPPY = 22;

/** Undoes Snappy's compression: texts, and copies of what came before. */
function uncompress(block: Uint8Array): Uint8Array {
  const reader = new BlockReader(block, 0, block.byteLength);
  const size = reader.varint();
  if (size > MOST_SNAPPY * block.byteLength) throw new RangeError(`a block unpacks to ${size} bytes`);
  const out = new Uint8Array(size);
  let at = 0;
  while (!reader.isOver) {
    const tag = reader.integer(1);
    const kind = tag & 3;
    if (kind === 0) {
      const length = tag >> 2;
      const text = reader.bytes(1 + (length < 60 ? length : reader.integer(length - 59)));
      out.set(text, at);
      at += text.byteLength;
      continue;
    }
    const length = kind === 1 ? 4 + ((tag >> 2) & 7) : 1 + (tag >> 2);
    const back = kind === 1 ? ((tag >> 5) << 8) | reader.integer(1) : reader.integer(kind === 2 ? 2 : 4);
    if (back === 0 || back > at || at + length > out.byteLength)
      throw new RangeError("a compressed block is damaged");
    // The copy may overlap what it makes.
    for (const end = at + length; at < end; at++) out[at] = out[at - back]!;
  }
  if (at !== out.byteLength) throw new RangeError("a compressed block is cut");
  return out;
}

/** Reads numbers, and bytes. */
export class BlockReader {
  constructor(
    private readonly content: Uint8Array,
    private at: number,
    private readonly end: number,
  ) {}

  get isOver(): boolean {
    return this.at >= this.end;
  }

  varint(): number {
    let value = 0;
    for (let factor = 1; ; factor *= 128) {
      if (this.at >= this.end || factor > 2 ** 56) throw new RangeError("a number is cut");
      const byte = this.content[this.at++]!;
      value += (byte & 0x7f) * factor;
      if (byte < 0x80) return value;
    }
  }

  /** A little-endian integer. */
  integer(size: number): number {
    return this.bytes(size).reduce((value, byte, i) => value + byte * 256 ** i, 0);
  }

  bytes(count: number): Uint8Array {
    if (this.at + count > this.end) throw new RangeError("an entry is cut");
    this.at += count;
    return this.content.subarray(this.at - count, this.at);
  }
}
