import type { OnnxSession } from "@tritonjs/backends/onnxruntime";
import { errorFor, TritonError } from "@tritonjs/protocol";
import type { PrefixDirectory } from "../prefix-directory.js";
import {
  commonLength,
  type DecoderGraph,
  forwardPass,
  isWorthSharing,
  type PassResult,
  type PassRow,
  PrefixCache,
  type WantedScores,
} from "./forward-pass.js";
import { KeptPrefixes } from "./kept-prefixes.js";
import { MOST_PREFILL_TOKENS, PrefillPace } from "./prefill-pace.js";
import type { RunningText } from "./running-text.js";
import type { EngineLoad } from "./text-generation.js";

/**
 * Rows of a pass that may have different numbers of new tokens: all of them; those of prompts whose computation begins,
 * while others share a pass only with one token each; or none. With "none", each text has a pass of its own.
 */
export type PassPadding = "all" | "prompts" | "none";

interface EngineLimits {
  readonly contextLength: number;
  readonly maxRunning: number;
  /** Tokens of prompts in a step; undefined to find them by the times of steps. */
  readonly prefillTokens: number | undefined;
  /** Tokens of prompts that are kept for later ones. */
  readonly cachedTokens: number;
  /** Which texts of different lengths run together. */
  readonly pads: PassPadding;
}

/** Room for new tokens, beside its prompt, that a text needs to join, so that it is not put back at once. */
const HEADROOM = 16;

/** Steps between two reports of the space in use. */
const STEPS_BETWEEN_REPORTS = 32;

/** What an engine works with. */
interface EngineParts {
  readonly session: OnnxSession;
  readonly graph: DecoderGraph;
  readonly budget: KvBudget;
  readonly limits: EngineLimits;
  /** Receives the load when it has changed. */
  readonly sendReport: (load: EngineLoad) => void;
  /** Milliseconds of a clock. */
  readonly now?: () => number;
  /** Directory of the prefixes that are kept in files, and a text that tells models apart. */
  readonly keptPrefixes?: { readonly directory: PrefixDirectory; readonly model: string } | undefined;
}

/**
 * Generates texts together, step by step. A step computes a part of new prompts, then one token of each other text:
 *
 * ```
 * add --> waiting --room--> running: prompt ... prompt | token | token | token ... --> done
 *            ^                                              |
 *            +--------- put back, when space runs out ------+   (the last one that came; it is computed again)
 * ```
 *
 * Between two steps texts join and leave. While texts stay the same, the keys and values that a step returns are the
 * input of the next one, without a copy.
 */
export class GenerationEngine {
  #waiting: RunningText[] = [];
  /** In the order of their admission. */
  #running: RunningText[] = [];
  #loop: Promise<void> | undefined;
  /** True if something has happened since the last step began. */
  #woken = false;
  #taken = 0;
  #reading = 0;
  #steps = 0;
  #runs = 0;
  #reported = "";
  /** Duration of the last run of the graph, which is also how long it waits for the format of a text. */
  #passMs = 0;
  readonly #cache: PrefixCache;
  readonly #pace: PrefillPace;
  readonly #kept: KeptPrefixes | undefined;

  readonly #now: () => number;

  constructor(private readonly parts: EngineParts) {
    const { graph, limits, keptPrefixes, now = () => performance.now() } = parts;
    this.#now = now;
    this.#pace = new PrefillPace(limits.prefillTokens);
    this.#cache = new PrefixCache(graph.kv, limits.cachedTokens);
    if (keptPrefixes === undefined) return;
    const { directory, model } = keptPrefixes;
    const isBusy = () => this.#running.length > 0;
    this.#kept = new KeptPrefixes(directory, { layout: graph.kv, model, cache: this.#cache, isBusy, now });
  }

  /** Adds a text. It is cancelled when its request is. */
  add(text: RunningText, signal: AbortSignal): void {
    this.#waiting.push(text);
    signal.addEventListener("abort", () => this.#wake(), { once: true });
    this.#wake();
  }

  /** Counts a request while its format is read. */
  async whileReading<T>(reading: Promise<T>): Promise<T> {
    this.#reading++;
    try {
      return await reading;
    } finally {
      this.#reading--;
      this.report();
    }
  }

  /** Counts a request that arrived, whether or not it becomes a text. */
  countTaken(): void {
    this.#taken++;
  }

  /** Reports the load, if it has changed. */
  report(): void {
    const { budget } = this.parts;
    const lengths = this.#lengths();
    const load: EngineLoad = {
      taken: this.#taken,
      reading: this.#reading,
      running: this.#running.length,
      waiting: this.#waiting.length,
      room: budget.roomBeside(lengths),
      usedTokens: Math.min(budget.tokens, budget.demand(lengths) + this.#cache.tokens),
      totalTokens: budget.tokens,
      contextLength: this.parts.limits.contextLength,
      runs: this.#runs,
    };
    const due = this.#steps % STEPS_BETWEEN_REPORTS === 0 ? load.usedTokens : "";
    const key = `${load.taken} ${load.reading} ${load.running} ${load.waiting} ${load.room === 0} ${due}`;
    if (key === this.#reported) return;
    this.#reported = key;
    this.parts.sendReport(load);
  }

  /** Resolves when no text is left, and the prefixes are in files. */
  async idle(): Promise<void> {
    await this.#loop;
    await this.#kept?.save();
  }

  #wake(): void {
    this.#woken = true;
    this.#loop ??= this.#run();
  }

  async #run(): Promise<void> {
    // Requests that arrive in one turn start together.
    await new Promise((resolve) => setImmediate(resolve));
    for (let worked = true; worked || this.#woken; ) {
      this.#woken = false;
      try {
        this.#dropClosed();
        this.#admit();
        worked = await this.#step();
      } catch (error) {
        for (const text of [...this.#running, ...this.#waiting]) this.#fail(text, error);
      }
      this.report();
      void this.#kept?.save();
    }
    this.#loop = undefined;
    void this.#kept?.save();
  }

  async #step(): Promise<boolean> {
    this.#makeSpace();
    const prefilled = await this.#prefill();
    const decoded = await this.#decode();
    this.#steps++;
    return prefilled || decoded;
  }

  /** Computes a part of the prompts that are not computed yet. */
  async #prefill(): Promise<boolean> {
    const { pads } = this.parts.limits;
    const isBeside = this.#running.some((one) => one.isDecoding && !one.blocked);
    const waiting = this.#running.filter((one) => !one.isDecoding && !one.blocked);
    for (const one of waiting) this.#findPrefix(one);
    const computable = this.#kept === undefined ? waiting : waiting.filter((one) => !one.blocked);
    const plan = planPrefill(computable, this.#pace.limit(isBeside), true, pads);
    if (plan.length === 0) return false;
    const rows = plan.map(({ text, count }) => ({
      past: text.past,
      tokens: text.tokens.slice(text.computed, text.computed + count),
      images: text.images,
      room: text.tokens.length,
    }));
    const completes = plan.map(({ text, count }) => text.pending === count);
    const texts = plan.map(({ text }) => text);
    const all = texts.some((text) => text.scoresPrompt);
    const begin = this.#now();
    const results = await this.#pass(texts, rows, all ? "all" : completes.includes(true) ? "last" : "none");
    const columns = Math.max(...plan.map(({ count }) => count));
    if (isBeside) this.#pace.tookPrefill(this.#now() - begin, columns * plan.length);
    for (const [i, result] of results.entries()) {
      const text = texts[i]!;
      text.takePrompt(result, rows[i]!.tokens.length);
      text.past = result.past;
      if (!completes[i]) continue;
      this.#cache.add(text.tokens.slice(0, text.promptLength), result.past);
      await this.#advance(text, result.scores!);
    }
    return true;
  }

  /** Takes over the keys and values of a prompt that begins alike, from memory or from files. */
  #findPrefix(text: RunningText): void {
    if (text.scoresPrompt || text.past !== undefined) return;
    text.past = this.#cache.find(text.tokens);
    if (this.#kept === undefined || text.hasLooked) return;
    text.hasLooked = true;
    // The others go on meanwhile.
    text.blocked = true;
    void this.#kept.load(text.tokens, text.computed).then((past) => {
      text.blocked = false;
      if (past !== undefined && text.responses.isOpen) {
        this.#cache.add(text.tokens.slice(0, past.length), past);
        text.past = past;
      }
      this.#wake();
    });
  }

  /** Computes the last token of each text whose prompt is computed, and chooses the next one. */
  async #decode(): Promise<boolean> {
    const decoding = this.#running.filter((one) => one.isDecoding && !one.blocked);
    if (decoding.length === 0) return false;
    const guessed = this.#guesses(decoding);
    let taken = 0;
    for (const texts of this.#decodeGroups(decoding, guessed)) {
      const guesses = texts.map((text) => guessed.get(text) ?? []);
      const rows = texts.map((text, i) => ({
        past: text.past,
        tokens: [...text.tokens.slice(-1), ...guesses[i]!],
      }));
      const isGuessed = guesses.some((guess) => guess.length > 0);
      const begin = this.#now();
      const results = await this.#pass(texts, rows, isGuessed ? "all" : "last");
      taken += this.#now() - begin;
      for (const [i, { past }] of results.entries()) texts[i]!.past = past;
      for (const [i, result] of results.entries()) {
        if (isGuessed) await this.#takeGuess(texts[i]!, guesses[i]!, result);
        else await this.#advance(texts[i]!, result.scores!);
      }
    }
    this.#pace.tookDecode(taken);
    return true;
  }

  /** Tokens that may follow texts, which the pass of the step computes in case they do. */
  #guesses(texts: readonly RunningText[]): ReadonlyMap<RunningText, readonly number[]> {
    const { contextLength, prefillTokens = MOST_PREFILL_TOKENS, pads } = this.parts.limits;
    const share = pads === "all" ? Math.floor(prefillTokens / texts.length) - 1 : prefillTokens - 1;
    const guesses = new Map<RunningText, readonly number[]>();
    for (const text of texts) {
      const guess = text.guess(Math.min(share, contextLength - text.tokens.length));
      // A pass of its own has to save more passes than the texts beside it would share.
      const isWorth = pads !== "prompts" || texts.length === 1 || guess.length > texts.length;
      if (guess.length > 0 && isWorth) guesses.set(text, guess);
    }
    return guesses;
  }

  /** Texts that share a pass. Operators that take one new token of each row compute a guess by itself. */
  #decodeGroups(
    texts: readonly RunningText[],
    guesses: ReadonlyMap<RunningText, readonly number[]>,
  ): readonly (readonly RunningText[])[] {
    const { pads } = this.parts.limits;
    if (pads === "none") return texts.map((one) => [one]);
    if (pads === "all" || guesses.size === 0) return [texts];
    const others = texts.filter((one) => !guesses.has(one));
    return [...(others.length > 0 ? [others] : []), ...[...guesses.keys()].map((one) => [one])];
  }

  /** Chooses tokens for as long as they are those of the guess, by whose scores the next one is chosen. */
  async #takeGuess(text: RunningText, guess: readonly number[], result: PassResult): Promise<void> {
    let right = 0;
    await this.#advance(text, result.scoresAfter(0));
    while (
      right < guess.length &&
      text.continues &&
      !text.awaitsFormat &&
      text.tokens.at(-1) === guess[right]
    ) {
      right++;
      await this.#advance(text, result.scoresAfter(right));
    }
    text.learn(guess.length, right);
    const { past } = text;
    if (past !== undefined) text.past = { ...past, length: past.length - (guess.length - right) };
  }

  /** Runs the graph. If it fails, its texts fail and the others go on. */
  async #pass(
    texts: readonly RunningText[],
    rows: readonly PassRow[],
    wanted: WantedScores,
  ): Promise<readonly PassResult[]> {
    try {
      this.#runs++;
      const begin = this.#now();
      const results = await forwardPass(this.parts.session, this.parts.graph, rows, wanted);
      this.#passMs = this.#now() - begin;
      return results;
    } catch (error) {
      const failure = errorFor("INTERNAL", `the decoder failed: ${TritonError.from(error).message}`, {
        cause: error,
      });
      for (const text of texts) this.#fail(text, failure);
      return [];
    }
  }

  /** Chooses the next token of a text. One whose format takes long is left to do so later, and the others go on. */
  async #advance(text: RunningText, scores: Float32Array): Promise<void> {
    const known = text.responses.isOpen ? text.formatKnown() : undefined;
    if (known === undefined || (await isWithin(known, this.#passMs))) return this.#choose(text, scores);
    const kept = scores.slice();
    text.blocked = true;
    text.awaitsFormat = true;
    void known.then(async () => {
      text.blocked = false;
      text.awaitsFormat = false;
      await this.#choose(text, kept);
      this.#wake();
    });
  }

  async #choose(text: RunningText, scores: Float32Array): Promise<void> {
    if (!text.responses.isOpen) return;
    try {
      if (await text.advance(scores)) {
        this.#remove(text);
        return;
      }
    } catch (error) {
      this.#fail(text, error);
      return;
    }
    const caughtUp = text.responses.writable;
    if (caughtUp === undefined) return;
    text.blocked = true;
    void caughtUp.then(() => {
      text.blocked = false;
      this.#wake();
    });
  }

  #fail(text: RunningText, error: unknown): void {
    text.responses.fail(error);
    this.#remove(text);
  }

  #remove(text: RunningText): void {
    this.#running = this.#running.filter((one) => one !== text);
    this.#waiting = this.#waiting.filter((one) => one !== text);
    text.release();
  }

  #dropClosed(): void {
    for (const text of [...this.#running, ...this.#waiting]) {
      if (!text.responses.isOpen) this.#remove(text);
    }
  }

  /** Lets waiting texts join while there is room. The first text of all always has room. */
  #admit(): void {
    const { budget } = this.parts;
    for (let next = this.#waiting[0]; next !== undefined; next = this.#waiting[0]) {
      if (this.#running.length >= this.parts.limits.maxRunning) return;
      const left = next.promptLength + next.maxTokens - next.tokens.length;
      const lengths = [...this.#lengths(), next.tokens.length + Math.min(left, HEADROOM)];
      if (this.#running.length > 0 && !budget.fits(lengths)) return;
      this.#waiting.shift();
      this.#running.push(next);
    }
  }

  /** Makes space for the next step: evicts cached prefixes first, then puts texts back, the last one first. */
  #makeSpace(): void {
    const { budget } = this.parts;
    while (this.#running.length > 1 && !budget.fits(this.#lengths())) {
      const last = this.#running.pop()!;
      last.past = undefined;
      this.#waiting.unshift(last);
    }
    this.#cache.shrinkTo(Math.max(0, budget.tokens - budget.demand(this.#lengths())));
  }

  #lengths(): number[] {
    return this.#running.map((text) => text.nextLength);
  }
}

/** A text whose prompt is not computed yet. */
export interface Prefilling {
  readonly tokens: readonly number[];
  /** Tokens that have their keys and values. */
  readonly computed: number;
  readonly pending: number;
}

/** True if the promise resolves within a time, which is at least a millisecond. */
async function isWithin(promise: Promise<void>, ms: number): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<boolean>((resolve) => {
    timer = setTimeout(resolve, ms, false);
  });
  const isKnown = await Promise.race([promise.then(() => true), late]);
  clearTimeout(timer);
  return isKnown;
}

interface PrefillPart<T> {
  readonly text: T;
  readonly count: number;
}

/**
 * Chooses which prompts the next pass computes, and how much of them. The first one sets the pace: others join if they
 * have as many computed tokens, so that their past needs no padding, and if all rows, padded to the longest, stay below
 * the limit. With "prompts", several rows have either no past or one token each, as the operator demands. A prompt waits for one before it that begins alike, whose keys and values it takes over afterwards.
 *
 * @param waiting texts in the order of their admission
 * @param limit tokens of a pass, padding included
 * @param shares true if prompts take over the beginning of others
 * @param pads which rows may have different numbers of tokens
 */
export function planPrefill<T extends Prefilling>(
  waiting: readonly T[],
  limit: number,
  shares: boolean,
  pads: PassPadding = "all",
): PrefillPart<T>[] {
  const [first] = waiting;
  if (first === undefined) return [];
  const parts: PrefillPart<T>[] = [{ text: first, count: Math.min(first.pending, limit) }];
  let longest = parts[0]!.count;
  for (const text of pads === "none" ? [] : waiting.slice(1)) {
    if (text.computed !== first.computed) continue;
    if (shares && parts.some(({ text: before }) => gains(text, before))) continue;
    const count = Math.min(text.pending, limit);
    if (pads === "prompts" && text.computed > 0 && (count > 1 || longest > 1)) continue;
    const columns = Math.max(longest, count);
    if ((parts.length + 1) * columns > limit) continue;
    parts.push({ text, count });
    longest = columns;
  }
  return parts;
}

/** True if a text can take over more from another, once that is computed, than it has computed itself. */
function gains(text: Prefilling, before: Prefilling): boolean {
  const common = Math.min(commonLength(text.tokens, before.tokens), text.tokens.length - 1);
  return isWorthSharing(common) && common > text.computed;
}

/** Space for keys and values, counted in tokens of padded rows. */
export class KvBudget {
  /** @param tokens number of tokens that fit */
  constructor(readonly tokens: number) {}

  /**
   * Tokens that texts need when they run together: each row is as long as the longest.
   *
   * @param lengths lengths of the texts after the next step
   */
  demand(lengths: readonly number[]): number {
    return lengths.length === 0 ? 0 : lengths.length * Math.max(...lengths);
  }

  fits(lengths: readonly number[]): boolean {
    return this.demand(lengths) <= this.tokens;
  }

  /** Length that one more text may have; 0 if there is no room for it. */
  roomBeside(lengths: readonly number[]): number {
    const each = Math.floor(this.tokens / (lengths.length + 1));
    return lengths.some((length) => length > each) ? 0 : each;
  }
}
