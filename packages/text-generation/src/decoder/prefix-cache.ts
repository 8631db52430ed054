import { detached, type KvLayout, type KvSlice } from "./kv-block.js";

/** Shortest prefix to share, in tokens. Shorter ones take longer to find and to copy than to compute. */
const SHORTEST = 8;

/** Largest number of entries, because every prompt is compared with each of them. */
const MOST_ENTRIES = 64;

interface Entry {
  readonly tokens: readonly number[];
  readonly past: KvSlice;
}

/** Number of tokens that two prompts have in common at the beginning. */
export function commonLength(a: readonly number[], b: readonly number[]): number {
  const end = Math.min(a.length, b.length);
  let length = 0;
  while (length < end && a[length] === b[length]) length++;
  return length;
}

/** True if a prefix is long enough to be shared. */
export function isWorthSharing(length: number): boolean {
  return length >= SHORTEST;
}

/**
 * Keys and values of past prompts, for prompts that begin alike. The least recently used ones are evicted when the
 * space is needed.
 */
export class PrefixCache {
  /** The least recently used first. */
  #entries: Entry[] = [];
  #tokens = 0;
  /** Number of prompts that began with a cached prefix. */
  hits = 0;

  /** @param maxTokens tokens that the cache holds at most; 0 for no cache */
  constructor(
    private readonly layout: KvLayout,
    private readonly maxTokens: number,
  ) {}

  /** Number of tokens that it holds. */
  get tokens(): number {
    return this.#tokens;
  }

  /** Keys and values of the beginning of a prompt, without its last token, whose scores are needed. */
  find(prompt: readonly number[]): KvSlice | undefined {
    let best: Entry | undefined;
    let length = 0;
    for (const entry of this.#entries) {
      const common = Math.min(commonLength(entry.tokens, prompt), prompt.length - 1);
      if (common <= length) continue;
      best = entry;
      length = common;
    }
    if (best === undefined || !isWorthSharing(length)) return undefined;
    this.#entries = [...this.#entries.filter((entry) => entry !== best), best];
    this.hits++;
    return { ...best.past, length };
  }

  /** Keeps the keys and values of a prompt, unless a longer prompt has them. */
  add(prompt: readonly number[], past: KvSlice): void {
    if (!isWorthSharing(prompt.length) || prompt.length > this.maxTokens) return;
    const covered = this.#entries.some(({ tokens }) => commonLength(tokens, prompt) === prompt.length);
    if (covered) return;
    for (const entry of this.#entries) {
      if (commonLength(entry.tokens, prompt) === entry.tokens.length) this.#remove(entry);
    }
    while (this.#tokens + prompt.length > this.maxTokens || this.#entries.length >= MOST_ENTRIES)
      this.#evict();
    const tokens = [...prompt];
    this.#entries.push({ tokens, past: detached({ ...past, length: tokens.length }, this.layout) });
    this.#tokens += tokens.length;
  }

  /** Makes room: holds at most this number of tokens afterwards. */
  shrinkTo(tokens: number): void {
    while (this.#tokens > tokens) this.#evict();
  }

  #evict(): void {
    const [oldest] = this.#entries;
    if (oldest !== undefined) this.#remove(oldest);
  }

  #remove(entry: Entry): void {
    this.#entries = this.#entries.filter((one) => one !== entry);
    this.#tokens -= entry.tokens.length;
  }
}
