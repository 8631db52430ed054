import type { WorkerResponseStream } from "@tritonjs/core/backend";
import { Tensor, TritonError } from "@tritonjs/protocol";
import { logprobsJson } from "../generator/logprobs-json.js";
import type { TextRequest } from "../request/text-request.js";
import type { ScoredToken } from "../sampling/token-logprobs.js";
import type { TextTokenizer } from "../tokenizer/text-tokenizer.js";

/** Why a text ended. */
export type TextEnd = "stop" | "length";

const encoder = new TextEncoder();

/**
 * Sends the responses to one request: pieces of the text as they come for a stream, else the whole text at the end.
 */
export class TextResponses {
  #text: string;
  #tokens = 0;
  #logprobs: ScoredToken[][] = [];
  readonly #request: Pick<TextRequest, "stream" | "prefix" | "wanted">;
  readonly #stream: WorkerResponseStream;
  readonly #tokenizer: TextTokenizer;
  readonly #promptTokens: number;

  constructor(
    request: Pick<TextRequest, "stream" | "prefix" | "wanted">,
    stream: WorkerResponseStream,
    tokenizer: TextTokenizer,
    promptTokens: number,
  ) {
    this.#request = request;
    this.#stream = stream;
    this.#tokenizer = tokenizer;
    this.#text = request.prefix;
    this.#promptTokens = promptTokens;
  }

  /** False once the request was cancelled or answered. */
  get isOpen(): boolean {
    return this.#stream.isOpen(0);
  }

  /** Undefined while the client keeps up, else a promise that resolves when it does again. */
  get writable(): Promise<void> | undefined {
    return this.#request.stream ? this.#stream.writable(0) : undefined;
  }

  /** True if the logarithms of probabilities are sent. */
  get wantsLogprobs(): boolean {
    return this.#request.wanted.logprobs;
  }

  /** Counts a token. */
  addToken(logprobs: ScoredToken[] | undefined): void {
    this.#tokens++;
    if (logprobs !== undefined) this.#logprobs.push(logprobs);
  }

  addText(text: string): void {
    this.#text += text;
  }

  /** Sends the text that came since the last response of a stream, if there is any. */
  flush(): void {
    if (!this.#request.stream || this.#text === "") return;
    this.#send(undefined);
  }

  finish(reason: TextEnd): void {
    this.#send(reason);
  }

  fail(error: unknown): void {
    this.#stream.sendError(0, TritonError.from(error), true);
  }

  #send(finish: TextEnd | undefined): void {
    const { wanted } = this.#request;
    const tensors = new Map([["text_output", textTensor(this.#text)]]);
    if (wanted.finishReason) tensors.set("finish_reason", textTensor(finish ?? "null"));
    if (wanted.logprobs) tensors.set("logprobs", textTensor(this.#logprobsJson()));
    if (wanted.inputTokens) tensors.set("num_input_tokens", countTensor(this.#promptTokens));
    if (wanted.outputTokens) tensors.set("num_output_tokens", countTensor(this.#tokens));
    this.#text = "";
    this.#tokens = 0;
    this.#logprobs = [];
    this.#stream.send(0, tensors, finish !== undefined);
  }

  #logprobsJson(): string {
    if (this.#logprobs.length === 0) return "null";
    const shown = (one: ScoredToken) => ({ ...one, token: this.#tokenizer.textOf(one.id) });
    return logprobsJson(
      this.#logprobs.map(([chosen, ...others]) => ({ ...shown(chosen!), top: others.map(shown) })),
    );
  }
}

function textTensor(text: string): Tensor {
  return Tensor.fromElements("BYTES", [1], [encoder.encode(text)]);
}

function countTensor(count: number): Tensor {
  return Tensor.fromElements("UINT32", [1], Uint32Array.of(count));
}
