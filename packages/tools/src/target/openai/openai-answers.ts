import type { ResponseHandling } from "../carrier.js";
import { epochNow } from "../epoch-time.js";
import type { HttpAnswers } from "../http/http-answers.js";
import { statusFailure } from "../http/infer-answers.js";
import { headerOf } from "../http/response-reader.js";
import type { LoadRequest } from "../load-request.js";
import type { Conversations, TurnMessage } from "./conversations.js";
import { EventLines } from "./event-lines.js";

const OK = 200;
const DONE = "[DONE]";

/** The members of responses and events that are read. */
interface OpenAiMessage {
  readonly choices?: readonly {
    readonly index?: number;
    readonly text?: string;
    readonly delta?: { readonly content?: string | null; readonly reasoning_content?: string | null };
    readonly message?: TurnMessage;
  }[];
  readonly usage?: { readonly prompt_tokens?: number; readonly completion_tokens?: number } | null;
  readonly error?: { readonly message?: string } | string;
}

/**
 * Reads answers of OpenAI endpoints: one JSON body, or a stream of events. Each event with text is a response. Tokens
 * are those that the server tells in `usage`; an event without it counts as one token.
 */
export class OpenAiAnswers implements HttpAnswers {
  readonly #handling: ResponseHandling;
  readonly #conversations: Conversations | undefined;
  #status = OK;
  #isStream = false;
  #chunks: Buffer[] = [];
  #events = new EventLines();
  /** Text of the first choice of a stream. */
  #text = "";

  /** @param conversations gets the answers to the turns of sessions */
  constructor(handling: ResponseHandling, conversations?: Conversations) {
    this.#handling = handling;
    this.#conversations = conversations;
  }

  begin(_request: LoadRequest, status: number, head: string): boolean {
    this.#status = status;
    this.#isStream = status === OK && headerOf(head, "content-type").startsWith("text/event-stream");
    this.#chunks = [];
    this.#events = new EventLines();
    this.#text = "";
    return true;
  }

  body(request: LoadRequest, bytes: Buffer): void {
    if (!this.#isStream) {
      this.#chunks.push(Buffer.from(bytes));
      return;
    }
    const now = epochNow();
    for (const data of this.#events.add(bytes)) if (data !== DONE) this.#event(request, data, now);
  }

  end(request: LoadRequest): void {
    if (this.#isStream) {
      if (request.responses === 0 && request.failure === undefined)
        request.fail("expected events with text, got a stream without any");
      this.#conversations?.answered(request, { role: "assistant", content: this.#text });
      return;
    }
    const body = Buffer.concat(this.#chunks);
    this.#chunks = [];
    if (this.#status !== OK) {
      request.fail(statusFailure(this.#status, body));
      return;
    }
    const message = this.#parse(request, body.toString());
    if (message === undefined) return;
    const answer = message.choices?.[0]?.message;
    if (answer !== undefined) this.#conversations?.answered(request, answer);
    request.responded(request.end);
    request.inputTokens = message.usage?.prompt_tokens ?? 0;
    request.responseTokens?.push(message.usage?.completion_tokens ?? 0);
    if (this.#handling.keepOutputs) request.responseOutputs?.push(body.toString());
  }

  #event(request: LoadRequest, data: string, now: number): void {
    const message = this.#parse(request, data);
    if (message === undefined) return;
    if (message.usage != null) this.#usage(request, message.usage);
    // The first event of a chat has only a role, the last one often only the usage.
    const hasText = message.choices?.some(
      ({ text, delta }) => Boolean(text) || Boolean(delta?.content) || Boolean(delta?.reasoning_content),
    );
    if (!hasText) return;
    if (this.#conversations !== undefined) this.#text += firstText(message);
    request.responded(now);
    request.responseTokens?.push(1);
    if (this.#handling.keepOutputs) request.responseOutputs?.push(data);
  }

  /** Corrects the number of tokens by the server's own: the surplus goes to the last event. */
  #usage(
    request: LoadRequest,
    { prompt_tokens = 0, completion_tokens }: NonNullable<OpenAiMessage["usage"]>,
  ): void {
    request.inputTokens = prompt_tokens;
    const tokens = request.responseTokens;
    if (completion_tokens === undefined || tokens === undefined || tokens.length === 0) return;
    const counted = tokens.reduce((sum, count) => sum + count, 0);
    const last = tokens.length - 1;
    tokens[last] = Math.max(0, tokens[last]! + completion_tokens - counted);
  }

  #parse(request: LoadRequest, text: string): OpenAiMessage | undefined {
    let message: OpenAiMessage;
    try {
      message = JSON.parse(text) as OpenAiMessage;
    } catch (cause) {
      request.fail(`cannot read the response: ${(cause as Error).message}`);
      return undefined;
    }
    const { error } = message;
    if (error === undefined || error === null) return message;
    request.fail(typeof error === "string" ? error : (error.message ?? JSON.stringify(error)));
    return undefined;
  }
}

/** Text of an event for the first choice. */
function firstText({ choices = [] }: OpenAiMessage): string {
  return choices.find(({ index = 0 }) => index === 0)?.delta?.content ?? "";
}
