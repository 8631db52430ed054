import type { WholeAnswer, WholeChoice } from "../generation/collect.js";
import type { Usage } from "../generation/generation.js";
import { newId, unixSeconds } from "../generation/ids.js";
import type { FinishReason } from "../model/text-piece.js";
import type { RankedToken, TokenLogprob } from "../model/token-logprobs.js";
import type { ToolCall } from "../model/tool-call-delta.js";

/** The members of a response that stay the same while it is made. */
export interface ResponseFrame {
  readonly id: string;
  readonly created_at: number;
  readonly echoed: Readonly<Record<string, unknown>>;
}

/** Makes the frame of a new response. */
export function responseFrame(echoed: ResponseFrame["echoed"]): ResponseFrame {
  return { id: newId("resp_"), created_at: unixSeconds(), echoed };
}

/** Members of a response that change from its first to its last event. */
export interface ResponseState {
  readonly status: "in_progress" | "completed" | "incomplete" | "failed";
  readonly output: readonly object[];
  readonly usage?: Usage | undefined;
  readonly incompleteReason?: string | undefined;
  readonly error?: { readonly code: string; readonly message: string } | undefined;
}

/** A response in a state. */
export function responseObject({ id, created_at, echoed }: ResponseFrame, state: ResponseState): object {
  const { status, output, usage, incompleteReason, error } = state;
  return {
    id,
    object: "response",
    created_at,
    status,
    error: error ?? null,
    incomplete_details: incompleteReason === undefined ? null : { reason: incompleteReason },
    ...echoed,
    output,
    previous_response_id: null,
    reasoning: { effort: null, summary: null },
    service_tier: "default",
    store: false,
    truncation: "disabled",
    usage: usage === undefined ? null : responseUsage(usage),
    user: null,
  };
}

/** Status of a response whose text ended for a reason. */
export function endState(reason: FinishReason): Pick<ResponseState, "status" | "incompleteReason"> {
  if (reason === "length") return { status: "incomplete", incompleteReason: "max_output_tokens" };
  if (reason === "content_filter") return { status: "incomplete", incompleteReason: reason };
  return { status: "completed" };
}

/** Makes the answer to a request that is not streamed. */
export function responseAnswer(
  { choices, usage }: WholeAnswer,
  frame: ResponseFrame,
  topLogprobs: number | undefined,
): object {
  const [choice] = choices as readonly [WholeChoice];
  const { text, toolCalls, logprobs, finishReason } = choice;
  const state = endState(finishReason);
  const output: object[] = [];
  if (text !== "" || toolCalls.length === 0) {
    const part = textPart(text, responseLogprobs(logprobs, topLogprobs));
    output.push(messageItem(newId("msg_"), state.status, [part]));
  }
  for (const call of toolCalls) output.push(callItem(newId("fc_"), call, "completed"));
  return responseObject(frame, { ...state, output, usage });
}

/** The item of a message. */
export function messageItem(id: string, status: ResponseState["status"], content: readonly object[]): object {
  return { id, type: "message", status, role: "assistant", content };
}

/** The part of a message with its text. */
export function textPart(text: string, logprobs: readonly object[]): object {
  return { type: "output_text", text, annotations: [], logprobs };
}

/** The item of a call of a function. */
export function callItem(id: string, call: ToolCall, status: string): object {
  const { name, arguments: text } = call.function;
  return { id, type: "function_call", status, call_id: call.id, name, arguments: text };
}

/** Logprobs as the Responses API has them. */
export function responseLogprobs(tokens: readonly RankedToken[], top: number | undefined): object[] {
  if (top === undefined) return [];
  return tokens.map((token) => ({
    ...withBytes(token),
    top_logprobs: token.top.slice(0, top).map(withBytes),
  }));
}

function withBytes({ token, logprob }: TokenLogprob): object {
  return { token, logprob, bytes: [...Buffer.from(token)] };
}

function responseUsage({ prompt_tokens, completion_tokens, total_tokens }: Usage): object {
  return {
    input_tokens: prompt_tokens,
    input_tokens_details: { cached_tokens: 0 },
    output_tokens: completion_tokens,
    output_tokens_details: { reasoning_tokens: 0 },
    total_tokens,
  };
}
