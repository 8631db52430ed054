import { Worker } from "node:worker_threads";
import { errorFor, TritonError } from "@tritonjs/protocol";
import type { ConstraintVocabulary } from "./constraint-vocabulary.js";
import type { GrammarAnswer, GrammarRequest } from "./grammar-jobs.js";

/** What the thread is started with. */
export interface GrammarThreadData {
  readonly vocabulary: ConstraintVocabulary;
  readonly endTokens: readonly number[];
  readonly allowsUnheld: boolean;
  readonly maxBytes: number;
}

/** The tokens that may follow in a text. */
export type AllowedTokens = Exclude<GrammarAnswer, { readonly error: string }>;

interface Waiting {
  readonly resolve: (allowed: AllowedTokens) => void;
  readonly reject: (error: TritonError) => void;
}

/** Bytes of the answers that are kept. */
const MAX_ANSWER_BYTES = 8 * 2 ** 20;
/** Bytes of an answer without its mask. */
const ANSWER_BYTES = 300;

/** Answers of the thread, by the state and the token that they follow: those used last are kept. */
class KnownAnswers {
  readonly #known = new Map<string, AllowedTokens>();
  #bytes = 0;

  after({ state }: AllowedTokens, token: number): AllowedTokens | undefined {
    const key = `${state} ${token}`;
    const known = this.#known.get(key);
    if (known === undefined) return undefined;
    this.#known.delete(key);
    this.#known.set(key, known);
    return known;
  }

  add(before: AllowedTokens, token: number, answer: AllowedTokens): void {
    const key = `${before.state} ${token}`;
    if (before.state === undefined || answer.state === undefined || this.#known.has(key)) return;
    this.#known.set(key, answer);
    this.#bytes += ANSWER_BYTES + answer.mask.byteLength;
    for (const [oldest, { mask }] of this.#known) {
      if (this.#bytes <= MAX_ANSWER_BYTES) return;
      this.#known.delete(oldest);
      this.#bytes -= ANSWER_BYTES + mask.byteLength;
    }
  }
}

/** A thread that reads formats and makes the masks of their texts. It keeps the process alive only while one is awaited. */
export class GrammarThread {
  readonly #worker: Worker;
  readonly #waiting = new Map<number, Waiting>();
  readonly known = new KnownAnswers();
  #texts = 0;
  #ended: TritonError | undefined;

  /** @param heapMegabytes memory of the thread, which ends when it needs more */
  constructor(data: GrammarThreadData, heapMegabytes: number) {
    this.#worker = new Worker(new URL("./grammar-main.js", import.meta.url), {
      workerData: data,
      // Flags of the process, such as --input-type, are for its own program.
      execArgv: [],
      resourceLimits: { maxOldGenerationSizeMb: heapMegabytes },
    });
    this.#worker.unref();
    this.#worker.on("message", (answer: GrammarAnswer) => this.#take(answer));
    this.#worker.on("error", (error) => this.#end(error.message));
    this.#worker.on("exit", () => this.#end("it was closed"));
  }

  /** True once the thread has ended. Its texts cannot go on. */
  get hasEnded(): boolean {
    return this.#ended !== undefined;
  }

  /** Begins a text in a format, which is JSON. Returns its number. */
  begin(format: string): readonly [text: number, allowed: Promise<AllowedTokens>] {
    const text = this.#texts++;
    return [text, this.#ask({ type: "begin", text, format })];
  }

  /** Takes tokens of a text. */
  take(text: number, tokens: readonly number[]): Promise<AllowedTokens> {
    return this.#ask({ type: "tokens", text, tokens });
  }

  /** Ends a text. A mask that is still awaited rejects with CANCELLED. */
  end(text: number): void {
    if (this.hasEnded) return;
    this.#worker.postMessage({ type: "end", text } satisfies GrammarRequest);
    this.#settle(text)?.reject(new TritonError("CANCELLED", "the request was cancelled"));
  }

  async close(): Promise<void> {
    await this.#worker.terminate();
  }

  #ask(request: Exclude<GrammarRequest, { type: "end" }>): Promise<AllowedTokens> {
    if (this.#ended !== undefined) return Promise.reject(this.#ended);
    return new Promise((resolve, reject) => {
      if (this.#waiting.size === 0) this.#worker.ref();
      this.#waiting.set(request.text, { resolve, reject });
      this.#worker.postMessage(request);
    });
  }

  #take(answer: GrammarAnswer): void {
    const waiting = this.#settle(answer.text);
    if ("error" in answer) waiting?.reject(errorFor("INVALID_INPUT", answer.error));
    else waiting?.resolve(answer);
  }

  #settle(text: number): Waiting | undefined {
    const waiting = this.#waiting.get(text);
    this.#waiting.delete(text);
    if (this.#waiting.size === 0) this.#worker.unref();
    return waiting;
  }

  #end(why: string): void {
    const text = `the thread that holds answers to their formats has ended, and starts again with the next format: ${why}`;
    this.#ended ??= errorFor("WORKER_CRASHED", text);
    for (const { reject } of this.#waiting.values()) reject(this.#ended);
    this.#waiting.clear();
  }
}
