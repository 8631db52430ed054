import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { readdir, stat, writeFile } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { PrefixDirectory } from "../prefix-directory.js";
import type { LlamaSequence, LlamaToken } from "./llama-module.js";

/** Fewest tokens that a file saves. Fewer ones take longer to load than to compute. */
const FEWEST_TOKENS = 64;

const VERSION = 1;

/** What is written about the state of a slot, in a file beside it. */
interface SavedState {
  readonly version: number;
  /** Hash of the model's files, of the version of llama.cpp and of what else decides about the form of a state. */
  readonly model: string;
  readonly tokens: readonly LlamaToken[];
  readonly bytes: number;
  readonly sha256: string;
}

/**
 * States of slots in files, for servers that start later and for processes beside this one. A state is written while no
 * text is running, because llama.cpp computes nothing meanwhile. It has two files: what llama.cpp writes, and a
 * description with the tokens and a checksum, without which llama.cpp never gets to read it.
 */
export class LlamaPrefixes {
  /** Descriptions by the names of their files; undefined for those of other models, and broken ones. */
  readonly #known = new Map<string, SavedState | undefined>();

  private constructor(
    private readonly directory: PrefixDirectory,
    private readonly model: string,
  ) {}

  /**
   * @param form what decides about the form of a state besides the model
   * @throws TritonError INVALID_ARG if the directory cannot be used
   */
  static async open(
    path: string,
    maxBytes: number | undefined,
    file: string,
    form: unknown,
    warn: (message: string) => void,
  ): Promise<LlamaPrefixes> {
    const directory = await PrefixDirectory.open(path, maxBytes, warn);
    const hashes: string[] = [];
    for (const part of await partsOf(file)) hashes.push(await hashOfFile(part));
    const model = createHash("sha256")
      .update(JSON.stringify([hashes, form]))
      .digest("hex");
    return new LlamaPrefixes(directory, model);
  }

  /**
   * Loads the longest beginning of a prompt into a slot, if it is longer than what the slot has.
   *
   * @param known tokens at the beginning of the prompt that the slot has
   */
  async load(sequence: LlamaSequence, prompt: readonly LlamaToken[], known: number): Promise<void> {
    const found = await this.#find(prompt);
    if (found === undefined || found.length < known + FEWEST_TOKENS) return;
    const { name, saved } = found;
    const state = stateName(name);
    try {
      const { bytes, sha256 } = saved;
      const { size } = await stat(this.directory.pathOf(state));
      if (size !== bytes) throw new Error(`${size} bytes instead of ${bytes}`);
      if ((await hashOfFile(this.directory.pathOf(state))) !== sha256) throw new Error("a wrong checksum");
      await sequence.loadStateFromFile!(this.directory.pathOf(state), { acceptRisk: true });
      void this.directory.touch([state, name]);
    } catch (error) {
      this.#known.set(name, undefined);
      // Another process may have deleted it.
      if ((error as NodeJS.ErrnoException).code !== "ENOENT")
        this.directory.reportBroken(state, (error as Error).message);
      await sequence.clearHistory();
    }
  }

  /**
   * Saves the state of a slot, unless a file has its prompt. No text may be running.
   *
   * @param promptLength tokens of its prompt
   */
  async save(sequence: LlamaSequence, promptLength: number): Promise<void> {
    const tokens = [...sequence.contextTokens];
    if (promptLength < FEWEST_TOKENS || tokens.length < promptLength || !this.directory.isWritable) return;
    const found = await this.#find(tokens.slice(0, promptLength));
    if (found !== undefined && found.length > promptLength - FEWEST_TOKENS) return;
    const id = createHash("sha256").update(this.model).update(Uint32Array.from(tokens)).digest("hex");
    // The size is known when llama.cpp has written it, so the largest state so far stands for it.
    const expected = Math.max(0, ...[...this.#known.values()].map((one) => one?.bytes ?? 0));
    let saved: SavedState | undefined;
    const isWritten = await this.directory.write(`${id}.llama`, expected, async (path) => {
      await sequence.saveStateToFile!(path);
      const { size: bytes } = await stat(path);
      saved = { version: VERSION, model: this.model, tokens, bytes, sha256: await hashOfFile(path) };
    });
    if (!isWritten || saved === undefined) return;
    const text = JSON.stringify(saved);
    const name = `${id}.json`;
    if (await this.directory.write(name, text.length, (path) => writeFile(path, text, { mode: 0o600 })))
      this.#known.set(name, saved);
  }

  /** The state with the longest beginning of a prompt. */
  async #find(prompt: readonly LlamaToken[]) {
    await this.#list();
    let best: { readonly name: string; readonly saved: SavedState; readonly length: number } | undefined;
    for (const [name, saved] of this.#known) {
      if (saved === undefined) continue;
      let length = 0;
      while (length < prompt.length && prompt[length] === saved.tokens[length]) length++;
      if (length > (best?.length ?? 0)) best = { name, saved, length };
    }
    return best;
  }

  /** Reads the descriptions that are new, also those of other processes. */
  async #list(): Promise<void> {
    const names = await this.directory.names(".json");
    const present = new Set(names);
    for (const name of this.#known.keys()) if (!present.has(name)) this.#known.delete(name);
    for (const name of names) {
      if (this.#known.has(name)) continue;
      const text = await this.directory.read(name);
      if (text !== undefined) this.#known.set(name, this.#read(name, text.toString()));
    }
  }

  #read(name: string, text: string): SavedState | undefined {
    try {
      const { version, model, tokens, bytes, sha256 } = JSON.parse(text) as SavedState;
      if (version !== VERSION || model !== this.model) return undefined;
      if (Array.isArray(tokens) && Number.isSafeInteger(bytes))
        return { version, model, tokens, bytes, sha256 };
    } catch {
      // Reported below.
    }
    this.directory.reportBroken(name, "text that does not describe one");
    return undefined;
  }
}

function stateName(description: string): string {
  return description.replace(/\.json$/, ".llama");
}

async function hashOfFile(path: string): Promise<string> {
  const hash = createHash("sha256");
  for await (const piece of createReadStream(path, { highWaterMark: 1 << 20 })) hash.update(piece as Buffer);
  return hash.digest("hex");
}

/** The files of a model that is in parts, such as `model-00001-of-00003.gguf`. */
async function partsOf(file: string): Promise<readonly string[]> {
  const [, begin, count] = /^(.*)-\d{5}-of-(\d{5})\.gguf$/.exec(basename(file)) ?? [];
  if (begin === undefined) return [file];
  const names = (await readdir(dirname(file))).filter(
    (name) => name.startsWith(`${begin}-`) && name.endsWith(`-of-${count}.gguf`),
  );
  return names.sort().map((name) => join(dirname(file), name));
}
