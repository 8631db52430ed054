import { createHash } from "node:crypto";
import { writeFile } from "node:fs/promises";
import { endianness } from "node:os";
import { Tensor } from "@tritonjs/protocol";
import type { PrefixDirectory } from "../prefix-directory.js";
import {
  bytesPerToken,
  type CachedPrefix,
  type KvLayout,
  type KvSlice,
  newElements,
  type PrefixCache,
} from "./forward-pass.js";

/**
 * Tokens in a file. The part of a prompt after its last whole block is computed, so blocks are short; a file of a small
 * model still has some kilobytes.
 */
export const BLOCK_TOKENS = 16;

const MAGIC = Buffer.from("tritonjs");
const VERSION = 1;
const VERSION_AT = 8;
const HASH_AT = 16;
const HASH_BYTES = 32;
const NAME_AT = HASH_AT + HASH_BYTES;
const HEADER_BYTES = NAME_AT + HASH_BYTES;

/** Time between two blocks that are written beside running texts, as a multiple of the time that a block took. */
const REST = 50;

/** Files that are looked for, and read, at a time. */
const MOST_CHECKS = 64;
const MOST_READS = 8;

/** Time after which files of a prompt that is in use are marked as used again. */
const TOUCH_MS = 10 * 60 * 1000;

/** Part of the directory's limit that one prompt may have, so that its end never replaces its beginning. */
const SHARE_OF_PROMPT = 1 / 2;

/** What is known about the files of a prompt in memory. */
interface Progress {
  /** Blocks that are written, or are not to be written. */
  blocks: number;
  /** Uses of the prompt when its files were last looked at, and when that was. */
  readonly uses: number;
  readonly at: number;
}

/** What prefixes in files belong to. */
interface PrefixParts {
  readonly layout: KvLayout;
  /** Text that differs for models whose keys and values differ. */
  readonly model: string;
  /** Prompts in memory. */
  readonly cache: Pick<PrefixCache, "entries">;
  /** True while texts are running. */
  readonly isBusy: () => boolean;
  /** Milliseconds of a clock. */
  readonly now?: () => number;
}

/**
 * Keys and values of prompts in files, for servers that start later and for processes beside this one. A prompt is cut
 * into blocks. The name of a block's file is a hash of the model and of all tokens up to its end:
 *
 * ```
 * tokens   0 ... 15        16 ... 31          32 ... 47
 * file     a = hash(model, 0 ... 15)
 *                          b = hash(a, 16 ... 31)
 *                                             c = hash(b, 32 ... 47)
 * ```
 *
 * So prompts that begin alike share files, and a prompt finds its files without a list of them.
 *
 * A file has a header (magic, version, checksum, its own name) and, layer by layer, keys and values `[heads, 16, size]`.
 */
export class KeptPrefixes {
  readonly #layout: KvLayout;
  readonly #root: Buffer;
  readonly #blockBytes: number;
  readonly #mostBlocks: number;
  readonly #now: () => number;
  readonly #progress = new WeakMap<CachedPrefix, Progress>();
  /** Loads that are under way, by the name of their last block. */
  readonly #loading = new Map<string, Promise<KvSlice | undefined>>();
  /** Blocks that are broken, or come after such a one. They are written again. */
  readonly #broken = new Set<string>();
  #saving: Promise<void> | undefined;
  #isDemanded = false;
  #restUntil = 0;

  constructor(
    private readonly directory: PrefixDirectory,
    private readonly parts: PrefixParts,
  ) {
    const { layout, model } = parts;
    this.#now = parts.now ?? (() => performance.now());
    const { layers, datatype } = layout;
    const shapes = layers.map(({ heads, size }) => [heads, size]);
    this.#layout = layout;
    this.#blockBytes = BLOCK_TOKENS * bytesPerToken(layout);
    const most = directory.maxBytes * SHARE_OF_PROMPT;
    this.#mostBlocks = Math.floor(most / (HEADER_BYTES + this.#blockBytes));
    const identity = [model, VERSION, BLOCK_TOKENS, datatype, endianness(), shapes];
    this.#root = createHash("sha256").update(JSON.stringify(identity)).digest();
  }

  /**
   * Loads the beginning of a prompt, without its last token, whose scores are needed. Files that are not what they
   * should be end what is found.
   *
   * @param known tokens at the beginning that need not be loaded
   * @returns undefined unless the files have more than those
   */
  async load(prompt: readonly number[], known: number): Promise<KvSlice | undefined> {
    const names = this.#names(prompt, prompt.length - 1);
    const count = await this.#countPresent(names, Math.floor(known / BLOCK_TOKENS));
    if (count * BLOCK_TOKENS <= known) return undefined;
    const last = names[count - 1]!;
    const loading = this.#loading.get(last) ?? this.#read(names.slice(0, count));
    this.#loading.set(last, loading);
    try {
      const past = await loading;
      return past !== undefined && past.length > known ? past : undefined;
    } finally {
      this.#loading.delete(last);
    }
  }

  /**
   * Writes the prompts in memory that no file has, the most recently used one first. Beside running texts, it writes a
   * block at a time and takes at most a fiftieth of the time. It ends when all is written, or the next block is not due.
   */
  save(): Promise<void> {
    this.#isDemanded = true;
    this.#saving ??= this.#saveAll().finally(() => {
      this.#saving = undefined;
    });
    return this.#saving;
  }

  async #saveAll(): Promise<void> {
    while (this.#isDemanded) {
      this.#isDemanded = false;
      while (this.#isDue && (await this.#saveBlock()));
    }
  }

  get #isDue(): boolean {
    return !this.parts.isBusy() || this.#now() >= this.#restUntil;
  }

  /** @returns false if there is nothing to write */
  async #saveBlock(): Promise<boolean> {
    if (!this.directory.isWritable) return false;
    const prefixes = this.parts.cache.entries;
    for (let i = prefixes.length - 1; i >= 0; i--) {
      const prefix = prefixes[i]!;
      const { tokens, past } = prefix;
      const progress = this.#progressOf(prefix);
      const blocks = Math.min(Math.floor(tokens.length / BLOCK_TOKENS), this.#mostBlocks);
      if (progress.blocks >= blocks) continue;
      const names = this.#names(tokens, blocks * BLOCK_TOKENS);
      const from = progress.blocks;
      while (progress.blocks < blocks && (await this.#has(names[progress.blocks]!))) progress.blocks++;
      await this.directory.touch(names.slice(from, progress.blocks));
      const name = names[progress.blocks];
      if (name === undefined) continue;
      const begin = this.#now();
      const content = this.#encode(name, past, progress.blocks);
      this.#restUntil = this.#now() + REST * (this.#now() - begin);
      const isWritten = await this.directory.write(name, content.length, (path) =>
        writeFile(path, content, { mode: 0o600 }),
      );
      if (!isWritten) return false;
      this.#broken.delete(name);
      progress.blocks++;
      return true;
    }
    return false;
  }

  /** Files of a prompt that was used for a while are looked at again: they count as used, and may have been deleted. */
  #progressOf(prefix: CachedPrefix): Progress {
    const { uses } = prefix;
    const known = this.#progress.get(prefix);
    if (known !== undefined && (known.uses === uses || this.#now() - known.at < TOUCH_MS)) return known;
    const progress = { blocks: 0, uses, at: this.#now() };
    this.#progress.set(prefix, progress);
    return progress;
  }

  /** Number of names at the beginning that have a file, if the first ones do. */
  async #countPresent(names: readonly string[], first: number): Promise<number> {
    for (let from = first; from < names.length; from += MOST_CHECKS) {
      const present = await Promise.all(names.slice(from, from + MOST_CHECKS).map((name) => this.#has(name)));
      const missing = present.indexOf(false);
      if (missing >= 0) return from + missing;
    }
    return names.length;
  }

  async #has(name: string): Promise<boolean> {
    return !this.#broken.has(name) && (await this.directory.has(name));
  }

  /** Names of the files of a prompt's first tokens. */
  #names(tokens: readonly number[], length: number): string[] {
    const names: string[] = [];
    let chain = this.#root;
    for (let end = BLOCK_TOKENS; end <= length; end += BLOCK_TOKENS) {
      const block = Uint32Array.from(tokens.slice(end - BLOCK_TOKENS, end).flatMap(wordsOf));
      chain = createHash("sha256").update(chain).update(block).digest();
      names.push(`${chain.toString("hex")}.kv`);
    }
    return names;
  }

  async #read(names: readonly string[]): Promise<KvSlice | undefined> {
    const width = names.length * BLOCK_TOKENS;
    const { layers, datatype } = this.#layout;
    const all = layers.map(({ heads, size }) => newElements(datatype, heads * width * size));
    let count = 0;
    const reads: (Promise<Buffer | undefined> | undefined)[] = [];
    for (const [i, name] of names.entries()) {
      while (reads.length < Math.min(names.length, i + MOST_READS))
        reads.push(this.directory.read(names[reads.length]!));
      const file = await reads[i];
      reads[i] = undefined;
      if (file === undefined) break;
      const fault = this.#faultOf(name, file);
      if (fault !== undefined) {
        this.directory.reportBroken(name, fault);
        // Nobody has looked at the others, and they have no use without this one.
        for (const one of names.slice(i)) this.#broken.add(one);
        break;
      }
      this.#decode(file, all, i, width);
      count++;
    }
    void this.directory.touch(names.slice(0, count));
    if (count === 0) return undefined;
    const tensors = layers.map(({ heads, size }, i) =>
      Tensor.fromElements(datatype, [1, heads, width, size], all[i]!),
    );
    // Texts that load it together share it.
    return {
      block: { tensors, rows: 1, width, isKept: true },
      row: 0,
      start: 0,
      length: count * BLOCK_TOKENS,
    };
  }

  #faultOf(name: string, file: Buffer): string | undefined {
    const expected = HEADER_BYTES + this.#blockBytes;
    if (file.length < HEADER_BYTES || !file.subarray(0, MAGIC.length).equals(MAGIC)) return "another file";
    const version = file.readUInt32LE(VERSION_AT);
    if (version !== VERSION) return `version ${version} of the format instead of ${VERSION}`;
    if (file.length !== expected) return `${file.length} bytes instead of ${expected}`;
    if (!checksumOf(file).equals(file.subarray(HASH_AT, NAME_AT))) return "a wrong checksum";
    return file.toString("hex", NAME_AT, HEADER_BYTES) === name.slice(0, 2 * HASH_BYTES)
      ? undefined
      : "the prefix of another name";
  }

  #encode(name: string, { block, row, start }: KvSlice, index: number): Buffer {
    const file = Buffer.alloc(HEADER_BYTES + this.#blockBytes);
    file.set(MAGIC);
    file.writeUInt32LE(VERSION, VERSION_AT);
    file.write(name.slice(0, 2 * HASH_BYTES), NAME_AT, "hex");
    const column = start + index * BLOCK_TOKENS;
    this.#eachHead(block.width, row, column, (layer, at, from, to) => {
      file.set(bytesOf(block.tensors[layer]!.elements as Uint16Array).subarray(from, to), at);
    });
    file.set(checksumOf(file), HASH_AT);
    return file;
  }

  #decode(file: Buffer, target: readonly (Float32Array | Uint16Array)[], index: number, width: number): void {
    this.#eachHead(width, 0, index * BLOCK_TOKENS, (layer, at, from, to) => {
      bytesOf(target[layer]!).set(file.subarray(at, at + to - from), from);
    });
  }

  /** Calls back for each head: where its columns are in a file, and between which bytes of the layer's tensor. */
  #eachHead(
    width: number,
    row: number,
    column: number,
    visit: (layer: number, at: number, from: number, to: number) => void,
  ): void {
    const { layers, datatype } = this.#layout;
    const elementBytes = datatype === "FP16" ? 2 : 4;
    let at = HEADER_BYTES;
    for (const [layer, { heads, size }] of layers.entries()) {
      const bytes = BLOCK_TOKENS * size * elementBytes;
      for (let head = 0; head < heads; head++) {
        const from = ((row * heads + head) * width + column) * size * elementBytes;
        visit(layer, at, from, from + bytes);
        at += bytes;
      }
    }
  }
}

/** A token, or the negative number of an image, whose words are above all tokens. */
function wordsOf(token: number): readonly number[] {
  return token >= 0 ? [token] : [2 ** 32 - 1, Math.floor(-token / 2 ** 32), -token % 2 ** 32];
}

/** Checksum of all bytes but itself. */
function checksumOf(file: Buffer): Buffer {
  return createHash("sha256").update(file.subarray(0, HASH_AT)).update(file.subarray(NAME_AT)).digest();
}

function bytesOf({ buffer, byteOffset, byteLength }: Float32Array | Uint16Array): Uint8Array {
  return new Uint8Array(buffer, byteOffset, byteLength);
}
