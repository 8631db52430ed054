import type { InferenceResponse } from "@tritonjs/core/frontend";
import type { Tensor } from "@tritonjs/protocol";
import type { TextModel } from "./text-model.js";
import { type RankedToken, readLogprobs } from "./token-logprobs.js";
import { readToolCalls, type ToolCallDelta } from "./tool-call-delta.js";

/** Why a choice ended. */
export type FinishReason = "stop" | "length" | "tool_calls" | "content_filter";

/** One response of a text model. */
export interface TextPiece {
  readonly text: string;
  readonly finishReason: FinishReason | undefined;
  readonly logprobs: readonly RankedToken[] | undefined;
  readonly inputTokens: number | undefined;
  readonly outputTokens: number | undefined;
  readonly toolCalls: readonly ToolCallDelta[];
}

const REASONS: Readonly<Record<string, FinishReason>> = {
  stop: "stop",
  length: "length",
  tool_calls: "tool_calls",
  content_filter: "content_filter",
};

/** Reads the responses of one request. Characters may be split between two responses. */
export class TextPieces {
  readonly #model: TextModel;
  readonly #decoder = new TextDecoder("utf-8", { ignoreBOM: true });

  constructor(model: TextModel) {
    this.#model = model;
  }

  read({ outputs }: InferenceResponse): TextPiece {
    const text = firstBytes(outputs.get(this.#model.textOutput));
    return {
      text: text === undefined ? "" : this.#decoder.decode(text, { stream: true }),
      finishReason: REASONS[textOf(outputs.get("finish_reason"))],
      logprobs: readLogprobs(textOf(outputs.get("logprobs"))),
      inputTokens: countOf(outputs.get("num_input_tokens")),
      outputTokens: countOf(outputs.get("num_output_tokens")),
      toolCalls: readToolCalls(textOf(outputs.get("tool_calls"))),
    };
  }

  /** The rest of the text: replacement characters for one that never became whole. */
  end(): string {
    return this.#decoder.decode();
  }
}

function firstBytes(tensor: Tensor | undefined): Uint8Array | undefined {
  return tensor?.datatype === "BYTES" ? (tensor.elements[0] as Uint8Array | undefined) : undefined;
}

function textOf(tensor: Tensor | undefined): string {
  const bytes = firstBytes(tensor);
  return bytes === undefined ? "" : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString();
}

function countOf(tensor: Tensor | undefined): number | undefined {
  if (tensor === undefined || tensor.datatype === "BYTES") return undefined;
  const [count] = tensor.elements as Iterable<number | bigint>;
  return count === undefined ? undefined : Number(count);
}
