import { ClientGone } from "@tritonjs/http/frontend";
import { TritonError } from "@tritonjs/protocol";
import type { ToolCallDelta } from "@tritonjs/text-generation";
import type { FinishReason } from "../model/text-piece.js";
import type { RankedToken } from "../model/token-logprobs.js";
import { joinToolCalls, type ToolCall } from "../model/tool-call-delta.js";
import type { OpenAiExchange } from "./exchange.js";
import { Generation, type GenerationPlan, type Usage } from "./generation.js";

/** A choice as a whole. */
export interface WholeChoice {
  readonly text: string;
  readonly toolCalls: readonly ToolCall[];
  readonly logprobs: readonly RankedToken[];
  readonly finishReason: FinishReason;
}

/** An answer as a whole. */
export interface WholeAnswer {
  readonly choices: readonly WholeChoice[];
  readonly usage: Usage | undefined;
}

/**
 * Runs a plan to its end.
 *
 * @throws the first error of the model; ClientGone when the client leaves
 */
export async function collectAnswer(exchange: OpenAiExchange, plan: GenerationPlan): Promise<WholeAnswer> {
  try {
    return await collect(exchange, plan);
  } catch (error) {
    // A refusal waits for its turn, so that clients that retry in a tight loop do not starve running requests.
    if (TritonError.is(error) && error.code === "UNAVAILABLE") await exchange.service.refusalTurn?.();
    throw error;
  }
}

function collect(exchange: OpenAiExchange, plan: GenerationPlan): Promise<WholeAnswer> {
  const parts = plan.choices.map(() => ({
    text: "",
    toolCalls: [] as ToolCallDelta[],
    logprobs: [] as RankedToken[],
    finishReason: "stop" as FinishReason,
  }));
  return new Promise((resolve, reject) => {
    new Generation(exchange, plan, {
      onBegin: () => {},
      onDelta: (choice, { text, toolCalls, logprobs }) => {
        const part = parts[choice]!;
        part.text += text;
        part.toolCalls.push(...toolCalls);
        part.logprobs.push(...logprobs);
      },
      onChoiceEnd: (choice, reason) => {
        parts[choice]!.finishReason = reason;
      },
      onEnd: (usage) => {
        const choices = parts.map((part) => ({ ...part, toolCalls: joinToolCalls(part.toolCalls) }));
        resolve({ choices, usage });
      },
      onError: reject,
      // Without an end or an error before, the client has left.
      onSettled: () => reject(new ClientGone()),
    }).start();
  });
}
