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

/** A thread that reads formats and makes the masks of their texts. It keeps the process alive only while one is awaited. */
export class GrammarThread {
  readonly #worker: Worker;
  readonly #waiting = new Map<number, Waiting>();
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

  /** Takes a token of a text. */
  take(text: number, token: number): Promise<AllowedTokens> {
    return this.#ask({ type: "token", text, token });
  }

  /** Ends a text. What is awaited for it rejects with CANCELLED. */
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
