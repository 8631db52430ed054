import type { WholeAnswer } from "../generation/collect.js";
import { newId, unixSeconds } from "../generation/ids.js";
import { DONE_EVENT, dataEvent, type EventWriter } from "../generation/stream-events.js";
import type { RankedToken } from "../model/token-logprobs.js";

/** Parts of a request on which its answer depends. */
export interface CompletionAnswerOptions {
  readonly model: string;
  /** Text before each choice: the prompt for `echo`, or an empty text. */
  readonly prefixes: readonly string[];
  /** Number of likely tokens to report for each token; undefined without logprobs. */
  readonly topLogprobs: number | undefined;
  readonly includeUsage: boolean;
}

/** Makes the answer to a completion. */
export function completionAnswer(
  { choices, usage }: WholeAnswer,
  { model, prefixes, topLogprobs }: CompletionAnswerOptions,
): object {
  return {
    id: newId("cmpl-"),
    object: "text_completion",
    created: unixSeconds(),
    model,
    choices: choices.map(({ text, logprobs, finishReason }, index) => ({
      index,
      text: prefixes[index]! + text,
      logprobs: completionLogprobs(logprobs, topLogprobs, prefixes[index]!.length),
      finish_reason: finishReason === "tool_calls" ? "stop" : finishReason,
    })),
    usage: usage ?? null,
    system_fingerprint: null,
  };
}

/** Makes the writer of the chunks of a completion. */
export function completionEvents(options: CompletionAnswerOptions): EventWriter {
  const { model, prefixes, topLogprobs, includeUsage } = options;
  const frame = {
    id: newId("cmpl-"),
    object: "text_completion",
    created: unixSeconds(),
    model,
    system_fingerprint: null,
  };
  /** Characters of each choice whose tokens have been reported. */
  const offsets = prefixes.map((prefix) => prefix.length);
  const chunk = (index: number, text: string, logprobs: object | null, reason: string | null) =>
    dataEvent({
      ...frame,
      choices: [{ index, text, logprobs, finish_reason: reason }],
      ...(includeUsage && { usage: null }),
    });
  return {
    begin: () =>
      prefixes.map((prefix, index) => (prefix === "" ? "" : chunk(index, prefix, null, null))).join(""),
    delta: (index, { text, logprobs }) => {
      const shown = completionLogprobs(logprobs, topLogprobs, offsets[index]!);
      for (const { token } of logprobs) offsets[index]! += token.length;
      return chunk(index, text, shown, null);
    },
    choiceEnd: (index, reason) => chunk(index, "", null, reason === "tool_calls" ? "stop" : reason),
    end: (usage) =>
      (includeUsage ? dataEvent({ ...frame, choices: [], usage: usage ?? null }) : "") + DONE_EVENT,
    error: ({ body: { error } }) => dataEvent({ error }),
  };
}

/** Logprobs as completions have them. */
function completionLogprobs(
  tokens: readonly RankedToken[],
  top: number | undefined,
  offset: number,
): object | null {
  if (top === undefined || tokens.length === 0) return null;
  let at = offset;
  const offsets = tokens.map(({ token }) => {
    const start = at;
    at += token.length;
    return start;
  });
  return {
    tokens: tokens.map(({ token }) => token),
    token_logprobs: tokens.map(({ logprob }) => logprob),
    top_logprobs:
      top === 0
        ? null
        : tokens.map((one) =>
            Object.fromEntries(one.top.slice(0, top).map(({ token, logprob }) => [token, logprob])),
          ),
    text_offset: offsets,
  };
}
