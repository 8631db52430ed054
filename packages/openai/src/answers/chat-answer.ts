import type { WholeAnswer } from "../generation/collect.js";
import { newId, unixSeconds } from "../generation/ids.js";
import type { EventWriter } from "../generation/stream-events.js";
import { DONE_EVENT, dataEvent } from "../generation/stream-events.js";
import type { RankedToken, TokenLogprob } from "../model/token-logprobs.js";

/** Parts of a request on which its answer depends. */
export interface ChatAnswerOptions {
  readonly model: string;
  readonly choices: number;
  /** Number of likely tokens to report for each token; undefined without logprobs. */
  readonly topLogprobs: number | undefined;
  readonly includeUsage: boolean;
}

/** Makes the answer to a chat. */
export function chatAnswer(
  { choices, usage }: WholeAnswer,
  { model, topLogprobs }: ChatAnswerOptions,
): object {
  return {
    id: newId("chatcmpl-"),
    object: "chat.completion",
    created: unixSeconds(),
    model,
    choices: choices.map(({ text, toolCalls, logprobs, finishReason }, index) => ({
      index,
      message: {
        role: "assistant",
        content: text === "" && toolCalls.length > 0 ? null : text,
        refusal: null,
        ...(toolCalls.length > 0 && { tool_calls: toolCalls }),
      },
      logprobs: chatLogprobs(logprobs, topLogprobs),
      finish_reason: finishReason,
    })),
    usage: usage ?? null,
    system_fingerprint: null,
  };
}

/** Makes the writer of the chunks of a chat. Its first chunks carry the role, one for each choice. */
export function chatEvents(options: ChatAnswerOptions): EventWriter {
  const { model, topLogprobs, includeUsage } = options;
  const frame = {
    id: newId("chatcmpl-"),
    object: "chat.completion.chunk",
    created: unixSeconds(),
    model,
    system_fingerprint: null,
  };
  const chunk = (index: number, delta: object, logprobs: object | null, reason: string | null) =>
    dataEvent({
      ...frame,
      choices: [{ index, delta, logprobs, finish_reason: reason }],
      ...(includeUsage && { usage: null }),
    });
  return {
    begin: () =>
      Array.from({ length: options.choices }, (_, index) =>
        chunk(index, { role: "assistant", content: "", refusal: null }, null, null),
      ).join(""),
    delta: (index, { text, toolCalls, logprobs }) => {
      const delta = {
        ...((text !== "" || toolCalls.length === 0) && { content: text }),
        ...(toolCalls.length > 0 && { tool_calls: toolCalls }),
      };
      return chunk(index, delta, logprobs.length === 0 ? null : chatLogprobs(logprobs, topLogprobs), null);
    },
    choiceEnd: (index, reason) => chunk(index, {}, null, reason),
    end: (usage) =>
      (includeUsage ? dataEvent({ ...frame, choices: [], usage: usage ?? null }) : "") + DONE_EVENT,
    error: ({ body: { error } }) => dataEvent({ error }),
  };
}

/** Logprobs as chats have them. */
export function chatLogprobs(tokens: readonly RankedToken[], top: number | undefined): object | null {
  if (top === undefined || tokens.length === 0) return null;
  const content = tokens.map((token) => ({
    ...withBytes(token),
    top_logprobs: token.top.slice(0, top).map(withBytes),
  }));
  return { content, refusal: null };
}

function withBytes({ token, logprob }: TokenLogprob): object {
  return { token, logprob, bytes: [...Buffer.from(token)] };
}
