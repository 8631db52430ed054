import type { WorkerResponseStream } from "@tritonjs/core/backend";
import { Tensor, TritonError } from "@tritonjs/protocol";
import type { ScoredToken } from "../sampling/token-logprobs.js";
import type { TextTokenizer } from "../tokenizer/text-tokenizer.js";
import type { OptionalOutput, TextRequest } from "./text-request.js";

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
  readonly #request: Pick<TextRequest, "stream" | "outputs">;
  readonly #stream: WorkerResponseStream;
  readonly #tokenizer: TextTokenizer;
  readonly #promptTokens: number;

  /** @param start text that comes first: the prompt, if the request wants it */
  constructor(
    request: Pick<TextRequest, "stream" | "outputs">,
    stream: WorkerResponseStream,
    tokenizer: TextTokenizer,
    prompt: { readonly start: string; readonly tokens: number },
  ) {
    this.#request = request;
    this.#stream = stream;
    this.#tokenizer = tokenizer;
    this.#text = prompt.start;
    this.#promptTokens = prompt.tokens;
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
    return this.#request.outputs.has("logprobs");
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
    const { outputs } = this.#request;
    const tensors = new Map([["text_output", textTensor(this.#text)]]);
    const add = (name: OptionalOutput, make: () => Tensor) => {
      if (outputs.has(name)) tensors.set(name, make());
    };
    add("finish_reason", () => textTensor(finish ?? "null"));
    add("logprobs", () => textTensor(this.#logprobsJson()));
    add("num_input_tokens", () => countTensor(this.#promptTokens));
    add("num_output_tokens", () => countTensor(this.#tokens));
    this.#text = "";
    this.#tokens = 0;
    this.#logprobs = [];
    this.#stream.send(0, tensors, finish !== undefined);
  }

  /** Written by hand: an object would sort its keys, which are numbers, and the chosen token has to be the first. */
  #logprobsJson(): string {
    if (this.#logprobs.length === 0) return "null";
    const tokens = this.#logprobs.map((entries) => {
      const fields = entries.map(({ id, logprob, rank }) => {
        const entry = { logprob, rank, decoded_token: this.#tokenizer.textOf(id) };
        return `"${id}":${JSON.stringify(entry)}`;
      });
      return `{${fields.join(",")}}`;
    });
    return `[${tokens.join(",")}]`;
  }
}

function textTensor(text: string): Tensor {
  return Tensor.fromElements("BYTES", [1], [encoder.encode(text)]);
}

function countTensor(count: number): Tensor {
  return Tensor.fromElements("UINT32", [1], Uint32Array.of(count));
}
