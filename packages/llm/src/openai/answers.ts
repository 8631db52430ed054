import { BodyStream, ClientGone, type V2Response } from "@tritonjs/http/frontend";
import type { ToolCallDelta } from "../chat/tool-call-family.js";
import {
  type ChoiceDelta,
  type FinishReason,
  Generation,
  type GenerationPlan,
  joinToolCalls,
  type RankedToken,
  type TokenLogprob,
  type ToolCall,
  type Usage,
} from "./generation.js";
import { describeError, type ErrorAnswer } from "./openai-error.js";
import { newId, type OpenAiExchange, unixSeconds } from "./openai-exchange.js";

/** Writes the events of a stream. Each method returns the text of its events. */
export interface EventWriter {
  begin(): string;
  delta(choice: number, delta: ChoiceDelta): string;
  choiceEnd(choice: number, reason: FinishReason): string;
  end(usage: Usage | undefined): string;
  /** The last event of a stream that failed. */
  error(error: ErrorAnswer): string;
}

/** Headers of a stream of events. */
const EVENT_STREAM_HEADERS: V2Response["headers"] = {
  "content-type": "text/event-stream; charset=utf-8",
  "cache-control": "no-cache",
  // Asks nginx not to collect the events.
  "x-accel-buffering": "no",
};

/**
 * Runs a plan and streams its events. The answer begins with the model's first response, so an error before it has a
 * status of its own. A slow client slows the model down (back-pressure).
 *
 * @throws the error of the model if it comes first; ClientGone when the client leaves before
 */
export async function streamAnswer(
  exchange: OpenAiExchange,
  plan: GenerationPlan,
  writer: EventWriter,
): Promise<V2Response> {
  // The exchange ends with the first event, and the generation continues.
  const memory = exchange.memory.split(exchange.memory.bytes);
  try {
    return await streamEvents(exchange, plan, writer, () => memory.release());
  } catch (error) {
    memory.release();
    throw error;
  }
}

function streamEvents(
  exchange: OpenAiExchange,
  plan: GenerationPlan,
  writer: EventWriter,
  onSettled: () => void,
): Promise<V2Response> {
  return new Promise((resolve, reject) => {
    let isBegun = false;
    const events = new BodyStream({
      onDrain: () => generation.resume(),
      onCancel: () => generation.cancel(),
    });
    const send = (text: string): void => {
      if (text !== "" && !events.write(Buffer.from(text))) generation.pause();
    };
    const generation = new Generation(exchange, plan, {
      onBegin: () => {
        isBegun = true;
        send(writer.begin());
        resolve({ status: 200, headers: EVENT_STREAM_HEADERS, body: events });
      },
      onDelta: (choice, delta) => send(writer.delta(choice, delta)),
      onChoiceEnd: (choice, reason) => send(writer.choiceEnd(choice, reason)),
      onEnd: (usage) => {
        send(writer.end(usage));
        events.end();
      },
      onError: (error) => {
        if (!isBegun) {
          reject(error);
          return;
        }
        send(writer.error(describeError(exchange.request, error)));
        events.end();
      },
      onSettled: () => {
        onSettled();
        events.end();
        reject(new ClientGone());
      },
    });
    generation.start();
  });
}

/** One event without a name. */
function dataEvent(data: unknown): string {
  return `data: ${JSON.stringify(data)}\n\n`;
}

/** The event after which clients of OpenAI expect no further one. */
const DONE_EVENT = "data: [DONE]\n\n";

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
export function collectAnswer(exchange: OpenAiExchange, plan: GenerationPlan): Promise<WholeAnswer> {
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

/** Parts of a request on which its answer depends. */
interface ChatAnswerOptions {
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
function chatLogprobs(tokens: readonly RankedToken[], top: number | undefined): object | null {
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

/** Parts of a request on which its answer depends. */
interface CompletionAnswerOptions {
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
