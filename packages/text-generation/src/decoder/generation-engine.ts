import type { OnnxSession } from "@tritonjs/core/onnxruntime";
import { TritonError } from "@tritonjs/protocol";
import type { DecoderGraph } from "./decoder-graph.js";
import type { EngineLoad } from "./engine-load.js";
import { forwardPass, type PassResult, type PassRow } from "./forward-pass.js";
import type { KvBudget } from "./kv-budget.js";
import { planPrefill } from "./plan-prefill.js";
import type { PrefixCache } from "./prefix-cache.js";
import type { RunningText } from "./running-text.js";

/** A decoder that is open, and its limits. */
export interface EngineParts {
  readonly session: OnnxSession;
  readonly graph: DecoderGraph;
  readonly budget: KvBudget;
  readonly cache: PrefixCache;
  /** Largest number of texts at a time. */
  readonly maxRunning: number;
  /** Tokens of prompts in a step. */
  readonly prefillTokens: number;
  /** False for graphs that do not support padding: texts of different lengths then run one after the other. */
  readonly pads: boolean;
  readonly contextLength: number;
  /** Called when the load has changed. */
  report(load: EngineLoad): void;
}

/** Room for new tokens, beside its prompt, that a text needs to join, so that it is not put back at once. */
const HEADROOM = 16;

/** Steps between two reports of the space in use. */
const STEPS_BETWEEN_REPORTS = 32;

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
  readonly #parts: EngineParts;
  #waiting: RunningText[] = [];
  /** In the order of their admission. */
  #running: RunningText[] = [];
  #loop: Promise<void> | undefined;
  /** True if something has happened since the last step began. */
  #woken = false;
  #taken = 0;
  #steps = 0;
  #reported = "";

  constructor(parts: EngineParts) {
    this.#parts = parts;
  }

  /** Adds a text. It is cancelled when its request is. */
  add(text: RunningText, signal: AbortSignal): void {
    this.#waiting.push(text);
    signal.addEventListener("abort", () => this.#wake(), { once: true });
    this.#wake();
  }

  /** Counts a request that arrived, whether or not it becomes a text. */
  countTaken(): void {
    this.#taken++;
  }

  /** Reports the load, if it has changed. */
  report(): void {
    const { budget, cache, contextLength, report } = this.#parts;
    const lengths = this.#lengths();
    const load: EngineLoad = {
      taken: this.#taken,
      running: this.#running.length,
      waiting: this.#waiting.length,
      room: budget.roomBeside(lengths),
      usedTokens: Math.min(budget.tokens, budget.demand(lengths) + cache.tokens),
      totalTokens: budget.tokens,
      contextLength,
    };
    const due = this.#steps % STEPS_BETWEEN_REPORTS === 0 ? load.usedTokens : "";
    const key = `${load.taken} ${load.running} ${load.waiting} ${load.room === 0} ${due}`;
    if (key === this.#reported) return;
    this.#reported = key;
    report(load);
  }

  /** Resolves when no text is left. */
  async idle(): Promise<void> {
    await this.#loop;
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
    }
    this.#loop = undefined;
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
    const { prefillTokens, cache, pads } = this.#parts;
    const waiting = this.#running.filter((one) => !one.isDecoding && !one.blocked);
    for (const one of waiting) one.past ??= cache.find(one.tokens);
    const plan = planPrefill(waiting, prefillTokens, true).slice(0, pads ? undefined : 1);
    if (plan.length === 0) return false;
    const rows = plan.map(({ text, count }) => ({
      past: text.past,
      tokens: text.tokens.slice(text.computed, text.computed + count),
    }));
    const completes = plan.map(({ text, count }) => text.pending === count);
    const texts = plan.map(({ text }) => text);
    const results = await this.#pass(texts, rows, completes.includes(true));
    for (const [i, result] of results.entries()) {
      const text = texts[i]!;
      text.past = result.past;
      if (!completes[i]) continue;
      cache.add(text.tokens.slice(0, text.promptLength), result.past);
      await this.#advance(text, result.scores!);
    }
    return true;
  }

  /** Computes the last token of each text whose prompt is computed, and chooses the next one. */
  async #decode(): Promise<boolean> {
    const decoding = this.#running.filter((one) => one.isDecoding && !one.blocked);
    if (decoding.length === 0) return false;
    for (const texts of this.#parts.pads ? [decoding] : decoding.map((one) => [one])) {
      const rows = texts.map((text) => ({ past: text.past, tokens: text.tokens.slice(-1) }));
      const results = await this.#pass(texts, rows, true);
      for (const [i, { past }] of results.entries()) texts[i]!.past = past;
      for (const [i, { scores }] of results.entries()) await this.#advance(texts[i]!, scores!);
    }
    return true;
  }

  /** Runs the graph. If it fails, its texts fail and the others go on. */
  async #pass(
    texts: readonly RunningText[],
    rows: readonly PassRow[],
    wantsScores: boolean,
  ): Promise<readonly PassResult[]> {
    try {
      return await forwardPass(this.#parts.session, this.#parts.graph, rows, wantsScores);
    } catch (error) {
      const failure = new TritonError("INTERNAL", `the decoder failed: ${TritonError.from(error).message}`, {
        cause: error,
      });
      for (const text of texts) this.#fail(text, failure);
      return [];
    }
  }

  async #advance(text: RunningText, scores: Float32Array): Promise<void> {
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

  /** Removes texts whose requests were cancelled. */
  #dropClosed(): void {
    for (const text of [...this.#running, ...this.#waiting]) {
      if (!text.responses.isOpen) this.#remove(text);
    }
  }

  /** Lets waiting texts join while there is room. The first text of all always has room. */
  #admit(): void {
    const { budget, maxRunning } = this.#parts;
    for (let next = this.#waiting[0]; next !== undefined; next = this.#waiting[0]) {
      if (this.#running.length >= maxRunning) return;
      const left = next.promptLength + next.maxTokens - next.tokens.length;
      const lengths = [...this.#lengths(), next.tokens.length + Math.min(left, HEADROOM)];
      if (this.#running.length > 0 && !budget.fits(lengths)) return;
      this.#waiting.shift();
      this.#running.push(next);
    }
  }

  /** Makes space for the next step: evicts cached prefixes first, then puts texts back, the last one first. */
  #makeSpace(): void {
    const { budget, cache } = this.#parts;
    while (this.#running.length > 1 && !budget.fits(this.#lengths())) {
      const last = this.#running.pop()!;
      last.past = undefined;
      this.#waiting.unshift(last);
    }
    cache.shrinkTo(Math.max(0, budget.tokens - budget.demand(this.#lengths())));
  }

  /** Lengths of the running texts after the next step. */
  #lengths(): number[] {
    return this.#running.map((text) => text.nextLength);
  }
}
