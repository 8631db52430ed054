import { invalidOption } from "../command/tool-errors.js";
import type { OpenAiDataSet } from "../data/data-set.js";
import { epochNow, type LoadRequest } from "./carrier.js";
import { type HttpAnswers, headerOf } from "./http-carrier.js";
import { postHead, statusFailure } from "./http-inference.js";
import { authorityOf, type Endpoint, type OpenAiTargetOptions } from "./target-options.js";
import { type RequestBytes, shareRequests, type WireTemplates } from "./wire-template.js";

/** The endpoint that requests go to unless the options name one. */
const DEFAULT_ENDPOINT = "v1/chat/completions";

/** Prepares the requests of a data set. @throws TritonError INVALID_ARG for a body without a model. */
export function openAiTemplates(
  data: OpenAiDataSet,
  target: OpenAiTargetOptions,
  at: Endpoint,
): WireTemplates {
  const requests = data.payloads.map((payload, i) => {
    const body = Buffer.from(JSON.stringify(withOptions(JSON.parse(payload), target, i)));
    const head = Buffer.from(headOf(target, at, String(body.length)), "latin1");
    return { parts: [head, body], positions: {} };
  });
  return shareRequests(requests);
}

/** Prepares the turns of a data set with sessions. @throws TritonError INVALID_ARG for a body without a model. */
export function conversationPlan(
  data: OpenAiDataSet,
  target: OpenAiTargetOptions,
  at: Endpoint,
): ConversationPlan {
  return {
    // The empty line comes after the length.
    head: headOf(target, at, undefined).slice(0, -"\r\n".length),
    bodies: data.payloads.map((payload, i) => JSON.stringify(withOptions(JSON.parse(payload), target, i))),
  };
}

function headOf(target: OpenAiTargetOptions, at: Endpoint, length: string | undefined): string {
  const path = `${at.basePath}${(target.endpoint ?? DEFAULT_ENDPOINT).replace(/^\/+/, "")}`;
  const own = {
    host: authorityOf(at),
    "content-type": "application/json",
    accept: target.streaming ? "text/event-stream" : "application/json",
    "content-length": length,
  };
  return postHead(path, own, target.headers ?? {});
}

function withOptions(
  body: Record<string, unknown>,
  { modelName, streaming = false }: OpenAiTargetOptions,
  index: number,
): Record<string, unknown> {
  const model = body.model ?? modelName;
  if (model === undefined)
    throw invalidOption(
      `payload ${index}: expected a member "model", or the model's name by -m, got neither`,
    );
  return streaming
    ? { stream_options: { include_usage: true }, ...body, model, stream: true }
    : { ...body, model };
}

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
  #status = OK;
  #isStream = false;
  #chunks: Buffer[] = [];
  #events = new EventLines();
  /** Text of the first choice of a stream. */
  #text = "";

  /** @param conversations gets the answers to the turns of sessions */
  constructor(
    private readonly keepsOutputs: boolean,
    private readonly conversations?: Conversations,
  ) {}

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
      this.conversations?.answered(request, { role: "assistant", content: this.#text });
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
    if (answer !== undefined) this.conversations?.answered(request, answer);
    request.responded(request.end);
    request.inputTokens = message.usage?.prompt_tokens ?? 0;
    request.responseTokens?.push(message.usage?.completion_tokens ?? 0);
    if (this.keepsOutputs) request.responseOutputs?.push(body.toString());
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
    if (this.conversations !== undefined) this.#text += firstText(message);
    request.responded(now);
    request.responseTokens?.push(1);
    if (this.keepsOutputs) request.responseOutputs?.push(data);
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

function firstText({ choices = [] }: OpenAiMessage): string {
  return choices.find(({ index = 0 }) => index === 0)?.delta?.content ?? "";
}

/** Data from which a thread builds the requests of conversations. It survives structured cloning. */
export interface ConversationPlan {
  readonly head: string;
  readonly bodies: readonly string[];
}

type TurnMessage = Readonly<Record<string, unknown>>;

/**
 * Makes the requests of sessions. A turn of a chat carries the messages and the answers of the turns before, and then
 * its own messages, as a chat client sends them. Turns without messages are sent as they are.
 */
export class Conversations implements RequestBytes {
  readonly prefix = undefined;
  rest: Buffer = Buffer.alloc(0);
  /** Messages so far, by the id of the session. */
  readonly #histories = new Map<number, TurnMessage[]>();

  constructor(private readonly plan: ConversationPlan) {}

  stamp({ payload, sequenceId, sequenceStart, sequenceEnd }: LoadRequest): void {
    const { head, bodies } = this.plan;
    const body = JSON.parse(bodies[payload]!) as { readonly messages?: unknown };
    let text = bodies[payload]!;
    if (Array.isArray(body.messages)) {
      const before = sequenceStart ? [] : (this.#histories.get(sequenceId) ?? []);
      const messages = [...before, ...(body.messages as TurnMessage[])];
      if (sequenceEnd) this.#histories.delete(sequenceId);
      else this.#histories.set(sequenceId, messages);
      if (before.length > 0) text = JSON.stringify({ ...body, messages });
    }
    this.rest = Buffer.from(`${head}content-length: ${Buffer.byteLength(text)}\r\n\r\n${text}`);
  }

  answered({ sequenceId }: LoadRequest, message: TurnMessage): void {
    this.#histories.get(sequenceId)?.push(message);
  }
}

const LINE_FEED = 10;
const CARRIAGE_RETURN = 13;

/** Takes the data of server-sent events out of the bytes of a stream. */
class EventLines {
  #pending: Buffer | undefined;
  #data = "";

  /** Returns the data of the events that are complete. */
  add(bytes: Buffer): string[] {
    const text = this.#pending === undefined ? bytes : Buffer.concat([this.#pending, bytes]);
    this.#pending = undefined;
    const events: string[] = [];
    let from = 0;
    for (;;) {
      const end = text.indexOf(LINE_FEED, from);
      if (end < 0) break;
      const to = text[end - 1] === CARRIAGE_RETURN && end > from ? end - 1 : end;
      this.#line(text.toString("utf8", from, to), events);
      from = end + 1;
    }
    if (from < text.length) this.#pending = Buffer.from(text.subarray(from));
    return events;
  }

  #line(line: string, events: string[]): void {
    if (line === "") {
      if (this.#data !== "") events.push(this.#data);
      this.#data = "";
    } else if (line.startsWith("data:")) {
      const value = line.slice(line[5] === " " ? 6 : 5);
      this.#data = this.#data === "" ? value : `${this.#data}\n${value}`;
    }
  }
}
