import { BodyStream, ClientGone, type V2Response } from "@tritonjs/http/frontend";
import type { ToolCallDelta } from "../chat/tool-call-pieces.js";
import type { TextFinishReason } from "../text-callback.js";
import {
  type ChoiceDelta,
  type Generation,
  joinToolCalls,
  type RankedToken,
  type ReportedToken,
  type ToolCall,
  type Usage,
} from "./generation.js";
import { describeError, type OpenAiError } from "./openai-error.js";
import { jsonResult, newId, type OpenAiExchange, unixSeconds } from "./openai-exchange.js";

/** Writes an answer, as a whole or as the events of a stream. */
export interface AnswerWriter {
  whole(answer: WholeAnswer): object;
  // The others return the text of their events.
  begin(): string;
  delta(choice: number, delta: ChoiceDelta): string;
  choiceEnd(choice: number, reason: TextFinishReason): string;
  end(usage: Usage | undefined): string;
  /** The last event of a stream that failed. */
  error(error: OpenAiError): string;
}

/**
 * Runs the requests of an answer, and sends it as a whole or as a stream.
 *
 * @throws the first error of the model, for a stream only one before its first event; ClientGone when the client leaves
 */
export async function answer(
  exchange: OpenAiExchange,
  generation: Generation,
  stream: boolean,
  writer: AnswerWriter,
): Promise<V2Response> {
  if (!stream) return jsonResult(writer.whole(await collectAnswer(generation)));
  // The exchange ends with the first event, and the generation continues.
  const memory = exchange.memory.split(exchange.memory.bytes);
  try {
    return await streamEvents(exchange, generation, writer, () => memory.release());
  } catch (error) {
    memory.release();
    throw error;
  }
}

export const EVENT_STREAM_HEADERS: V2Response["headers"] = {
  "content-type": "text/event-stream; charset=utf-8",
  "cache-control": "no-cache",
  // Asks nginx not to collect the events.
  "x-accel-buffering": "no",
};

/**
 * Streams events. The answer begins with the model's first response, so an error before it has a status of its own. A
 * slow client slows the model down (back-pressure).
 */
function streamEvents(
  exchange: OpenAiExchange,
  generation: Generation,
  writer: AnswerWriter,
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
    generation.start({
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
  });
}

export function dataEvent(data: unknown): string {
  return `data: ${JSON.stringify(data)}\n\n`;
}

/** The event after which clients of OpenAI expect no further one. */
export const DONE_EVENT = "data: [DONE]\n\n";

export interface WholeChoice {
  readonly text: string;
  readonly reasoning: string;
  readonly toolCalls: readonly ToolCall[];
  readonly logprobs: readonly RankedToken[];
  readonly prompt: readonly RankedToken[];
  readonly finishReason: TextFinishReason;
}

export interface WholeAnswer {
  readonly choices: readonly WholeChoice[];
  readonly usage: Usage | undefined;
}

function collectAnswer(generation: Generation): Promise<WholeAnswer> {
  const parts = Array.from({ length: generation.length }, () => ({
    text: "",
    reasoning: "",
    toolCalls: [] as ToolCallDelta[],
    logprobs: [] as RankedToken[],
    prompt: [] as RankedToken[],
    finishReason: "stop" as TextFinishReason,
  }));
  return new Promise((resolve, reject) => {
    generation.start({
      onBegin: () => {},
      onDelta: (choice, { text, reasoning, toolCalls, logprobs, prompt }) => {
        const part = parts[choice]!;
        part.text += text;
        part.reasoning += reasoning;
        part.toolCalls.push(...toolCalls);
        part.logprobs.push(...logprobs);
        part.prompt.push(...prompt);
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
    });
  });
}

/** Parts of a request on which its answer depends. */
export interface AnswerOptions {
  readonly model: string;
  /** Number of likely tokens to report for each token; undefined without logprobs. */
  readonly topLogprobs: number | undefined;
  readonly includeUsage: boolean;
}

export abstract class ChoicesWriter implements AnswerWriter {
  protected readonly top: number | undefined;
  readonly #includeUsage: boolean;
  readonly #object: string;
  readonly #frame: object;

  /**
   * @param prefix prefix of the id
   * @param object kind of a whole answer
   * @param chunkObject kind of a chunk
   */
  constructor(
    { model, topLogprobs, includeUsage }: AnswerOptions,
    prefix: string,
    object: string,
    chunkObject: string,
  ) {
    this.top = topLogprobs;
    this.#includeUsage = includeUsage;
    this.#object = object;
    const id = newId(prefix);
    this.#frame = { id, object: chunkObject, created: unixSeconds(), model, system_fingerprint: null };
  }

  whole({ choices, usage }: WholeAnswer): object {
    return {
      ...this.#frame,
      object: this.#object,
      choices: this.kept(choices).map((from, index) => ({
        index,
        ...this.wholeChoice(choices[from]!, from),
      })),
      usage: usage ?? null,
    };
  }

  /** Numbers of the choices that the answer has, in their order. */
  protected kept(choices: WholeAnswer["choices"]): readonly number[] {
    return [...choices.keys()];
  }

  protected abstract wholeChoice(choice: WholeChoice, index: number): object;

  abstract begin(): string;

  abstract delta(choice: number, delta: ChoiceDelta): string;

  abstract choiceEnd(choice: number, reason: TextFinishReason): string;

  end(usage: Usage | undefined): string {
    const last = this.#includeUsage ? dataEvent({ ...this.#frame, choices: [], usage: usage ?? null }) : "";
    return last + DONE_EVENT;
  }

  error({ body: { error } }: OpenAiError): string {
    return dataEvent({ error });
  }

  protected chunk(index: number, part: object, logprobs: object | null, reason: string | null): string {
    const choices = [{ index, ...part, logprobs, finish_reason: reason }];
    return dataEvent({ ...this.#frame, choices, ...(this.#includeUsage && { usage: null }) });
  }
}

/** Writes answers to chats. The first chunks of a stream carry the role, one for each choice. */
export class ChatWriter extends ChoicesWriter {
  constructor(
    options: AnswerOptions,
    private readonly choices: number,
  ) {
    super(options, "chatcmpl-", "chat.completion", "chat.completion.chunk");
  }

  protected wholeChoice({ text, reasoning, toolCalls, logprobs, finishReason }: WholeChoice): object {
    const content = text === "" && toolCalls.length > 0 ? null : text;
    const calls = toolCalls.length > 0 && { tool_calls: toolCalls };
    const thoughts = reasoning !== "" && { reasoning_content: reasoning };
    return {
      message: { role: "assistant", content, refusal: null, ...thoughts, ...calls },
      logprobs: this.#logprobs(logprobs),
      finish_reason: finishReason,
    };
  }

  begin(): string {
    const delta = { role: "assistant", content: "", refusal: null };
    return Array.from({ length: this.choices }, (_, index) => this.chunk(index, { delta }, null, null)).join(
      "",
    );
  }

  /** Each chunk has a piece of the text or of one call, because clients read the first call of a chunk alone. */
  delta(index: number, { text, reasoning, toolCalls, logprobs }: ChoiceDelta): string {
    const parts = [
      ...(reasoning !== "" ? [{ reasoning_content: reasoning }] : []),
      ...(text !== "" || (toolCalls.length === 0 && reasoning === "") ? [{ content: text }] : []),
      ...toolCalls.map((call) => ({ tool_calls: [call] })),
    ];
    return parts
      .map((delta, i) => this.chunk(index, { delta }, i === 0 ? this.#logprobs(logprobs) : null, null))
      .join("");
  }

  choiceEnd(index: number, reason: TextFinishReason): string {
    return this.chunk(index, { delta: {} }, null, reason);
  }

  #logprobs(tokens: readonly RankedToken[]): object | null {
    if (this.top === undefined || tokens.length === 0) return null;
    return { content: rankedLogprobs(tokens, this.top), refusal: null };
  }
}

/** Logprobs with the bytes of each token. */
export function rankedLogprobs(tokens: readonly RankedToken[], top: number): object[] {
  const shown = ({ token, logprob, bytes }: ReportedToken) => ({ token, logprob, bytes: [...bytes] });
  return tokens.map((one) => ({ ...shown(one), top_logprobs: one.top.slice(0, top).map(shown) }));
}
