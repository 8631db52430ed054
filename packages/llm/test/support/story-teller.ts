import { Triton, type TritonOptions } from "@tritonjs/core";
import { type TextGenerationOptions, textGeneration } from "@tritonjs/llm";
import { STORIES } from "./stories.js";

/** Parameters of a request by the names that clients use. */
export type Sampling = Readonly<Record<string, unknown>>;

/** A request for a text. */
export interface Wish {
  readonly prompt?: string;
  readonly messages?: unknown;
  readonly sampling?: Sampling;
  readonly stream?: boolean;
  readonly inputs?: Readonly<Record<string, unknown>>;
  readonly signal?: AbortSignal;
  readonly priority?: number;
}

/** A response, with the outputs that were sent. */
export interface Piece {
  readonly text: string;
  readonly finish?: string;
  readonly tokens?: number;
  readonly promptTokens?: number;
  readonly logprobs?: unknown;
}

/** The model that writes stories, in a server of its own. */
export class StoryTeller {
  readonly triton: Triton;
  readonly model;

  constructor(options: Partial<TextGenerationOptions> = {}, config = {}, server: TritonOptions = {}) {
    this.triton = new Triton(server);
    const inferFunc = textGeneration({ directory: STORIES, intraOpNumThreads: 1, ...options });
    this.model = this.triton.bind({ modelName: "stories", inferFunc, config });
  }

  /** The responses to a request. */
  async *pieces(wish: Wish): AsyncGenerator<Piece> {
    const { prompt, messages, sampling = {}, stream = true, inputs = {}, signal, priority } = wish;
    const given = {
      ...(prompt === undefined ? {} : { text_input: [prompt] }),
      ...(messages === undefined ? {} : { messages: [JSON.stringify(messages)] }),
      stream: [stream],
      exclude_input_in_output: [true],
      sampling_parameters: [JSON.stringify(sampling)],
      return_finish_reason: [true],
      return_num_input_tokens: [true],
      return_num_output_tokens: [true],
      return_logprobs: [sampling.logprobs !== undefined],
      ...inputs,
    };
    const options = {
      ...(signal === undefined ? {} : { signal }),
      ...(priority === undefined ? {} : { priority }),
    };
    for await (const response of this.model.stream(given as never, options)) {
      const outputs = response as unknown as Record<string, { get(i: number): unknown } | undefined>;
      const value = (name: string) => outputs[name]?.get(0) as string | undefined;
      const logprobs = value("logprobs");
      yield {
        text: textOf(value("text_output")),
        finish: textOf(value("finish_reason")),
        promptTokens: Number(value("num_input_tokens")),
        tokens: Number(value("num_output_tokens")),
        ...(logprobs === undefined ? {} : { logprobs: JSON.parse(textOf(logprobs)) }),
      };
    }
  }

  /** All responses to a request. */
  async all(wish: Wish): Promise<Piece[]> {
    const all: Piece[] = [];
    for await (const piece of this.pieces(wish)) all.push(piece);
    return all;
  }

  async text(wish: Wish): Promise<string> {
    return (await this.all(wish)).map(({ text }) => text).join("");
  }

  /** Value of a metric of the model. */
  async metric(name: string): Promise<number> {
    const page = await this.triton.metrics.metrics();
    return Number(new RegExp(`^${name}\\{[^}]*\\} (\\S+)`, "m").exec(page)?.[1] ?? Number.NaN);
  }

  close(): Promise<void> {
    return this.triton.close();
  }
}

function textOf(value: unknown): string {
  return value instanceof Uint8Array ? new TextDecoder().decode(value) : String(value);
}
