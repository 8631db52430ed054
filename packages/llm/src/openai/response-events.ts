import type { ToolCallDelta } from "../chat/tool-call-family.js";
import type { EventWriter, WholeAnswer, WholeChoice } from "./answers.js";
import type { ChoiceDelta, FinishReason, RankedToken, TokenLogprob, ToolCall, Usage } from "./generation.js";
import type { ErrorAnswer } from "./openai-error.js";
import { newId, unixSeconds } from "./openai-exchange.js";

/** Writes the events of a streamed response: items open, grow and close one after the other. */
export class ResponseEvents implements EventWriter {
  readonly #frame: ResponseFrame;
  readonly #topLogprobs: number | undefined;
  /** Items that are closed. */
  readonly #output: object[] = [];
  #item: OpenMessage | OpenCall | undefined;
  #sequence = 0;
  #reason: FinishReason = "stop";

  constructor(frame: ResponseFrame, topLogprobs: number | undefined) {
    this.#frame = frame;
    this.#topLogprobs = topLogprobs;
  }

  begin(): string {
    const response = this.#response({ status: "in_progress", output: [] });
    return this.#event("response.created", { response }) + this.#event("response.in_progress", { response });
  }

  delta(_choice: number, { text, toolCalls, logprobs }: ChoiceDelta): string {
    let events = "";
    if (text !== "" || logprobs.length > 0) {
      const tokens = responseLogprobs(logprobs, this.#topLogprobs);
      const { item, opening } = this.#message();
      item.text += text;
      item.logprobs.push(...tokens);
      const place = { item_id: item.id, output_index: this.#output.length, content_index: 0 };
      events +=
        opening + this.#event("response.output_text.delta", { ...place, delta: text, logprobs: tokens });
    }
    for (const call of toolCalls) events += this.#callDelta(call);
    return events;
  }

  choiceEnd(_choice: number, reason: FinishReason): string {
    this.#reason = reason;
    if (this.#item !== undefined) return this.#closeItem();
    // An empty text is an item, too.
    return this.#output.length > 0 ? "" : this.#message().opening + this.#closeItem();
  }

  end(usage: Usage | undefined): string {
    const state = endState(this.#reason);
    const response = this.#response({ ...state, output: this.#output, usage });
    return this.#event(`response.${state.status}`, { response });
  }

  error({ body: { error } }: ErrorAnswer): string {
    const { code, message, param } = error;
    return this.#event("error", { code, message, param, error });
  }

  #callDelta({ index, id, function: part }: ToolCallDelta): string {
    let events = "";
    let item = this.#item;
    if (item?.kind !== "call" || item.index !== index) {
      events += this.#closeItem();
      item = {
        kind: "call",
        id: newId("fc_"),
        index,
        callId: id ?? newId("call_"),
        name: part?.name ?? "",
        text: "",
      };
      this.#item = item;
      const added = callItem(item.id, toolCallOf(item), "in_progress");
      events += this.#event("response.output_item.added", { output_index: this.#output.length, item: added });
    }
    const text = part?.arguments ?? "";
    if (text === "") return events;
    item.text += text;
    const place = { item_id: item.id, output_index: this.#output.length };
    return events + this.#event("response.function_call_arguments.delta", { ...place, delta: text });
  }

  /** The message that is open, and the events that opened it if it was not. */
  #message(): { item: OpenMessage; opening: string } {
    if (this.#item?.kind === "message") return { item: this.#item, opening: "" };
    const closing = this.#closeItem();
    const item: OpenMessage = { kind: "message", id: newId("msg_"), text: "", logprobs: [] };
    this.#item = item;
    const place = { output_index: this.#output.length };
    const added = messageItem(item.id, "in_progress", []);
    const part = { item_id: item.id, ...place, content_index: 0, part: textPart("", []) };
    const opening =
      this.#event("response.output_item.added", { ...place, item: added }) +
      this.#event("response.content_part.added", part);
    return { item, opening: closing + opening };
  }

  #closeItem(): string {
    const item = this.#item;
    if (item === undefined) return "";
    this.#item = undefined;
    const place = { item_id: item.id, output_index: this.#output.length };
    let events = "";
    let closed: object;
    if (item.kind === "call") {
      closed = callItem(item.id, toolCallOf(item), "completed");
      const done = { ...place, name: item.name, arguments: item.text };
      events += this.#event("response.function_call_arguments.done", done);
    } else {
      const { text, logprobs } = item;
      const part = textPart(text, logprobs);
      closed = messageItem(item.id, endState(this.#reason).status, [part]);
      events += this.#event("response.output_text.done", { ...place, content_index: 0, text, logprobs });
      events += this.#event("response.content_part.done", { ...place, content_index: 0, part });
    }
    events += this.#event("response.output_item.done", { output_index: place.output_index, item: closed });
    this.#output.push(closed);
    return events;
  }

  #response(state: ResponseState): object {
    return responseObject(this.#frame, state);
  }

  #event(type: string, members: object): string {
    const data = JSON.stringify({ type, sequence_number: this.#sequence++, ...members });
    return `event: ${type}\ndata: ${data}\n\n`;
  }
}

/** A message that grows. */
interface OpenMessage {
  readonly kind: "message";
  readonly id: string;
  text: string;
  readonly logprobs: object[];
}

/** A call that grows. */
interface OpenCall {
  readonly kind: "call";
  readonly id: string;
  readonly index: number;
  readonly callId: string;
  readonly name: string;
  text: string;
}

function toolCallOf({ callId, name, text }: OpenCall): ToolCall {
  return { id: callId, type: "function", function: { name, arguments: text } };
}

/** The members of a response that stay the same while it is made. */
interface ResponseFrame {
  readonly id: string;
  readonly created_at: number;
  readonly echoed: Readonly<Record<string, unknown>>;
}

/** Makes the frame of a new response. */
export function responseFrame(echoed: ResponseFrame["echoed"]): ResponseFrame {
  return { id: newId("resp_"), created_at: unixSeconds(), echoed };
}

/** Members of a response that change from its first to its last event. */
interface ResponseState {
  readonly status: "in_progress" | "completed" | "incomplete" | "failed";
  readonly output: readonly object[];
  readonly usage?: Usage | undefined;
  readonly incompleteReason?: string | undefined;
  readonly error?: { readonly code: string; readonly message: string } | undefined;
}

/** A response in a state. */
function responseObject({ id, created_at, echoed }: ResponseFrame, state: ResponseState): object {
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
function endState(reason: FinishReason): Pick<ResponseState, "status" | "incompleteReason"> {
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
function messageItem(id: string, status: ResponseState["status"], content: readonly object[]): object {
  return { id, type: "message", status, role: "assistant", content };
}

/** The part of a message with its text. */
function textPart(text: string, logprobs: readonly object[]): object {
  return { type: "output_text", text, annotations: [], logprobs };
}

/** The item of a call of a function. */
function callItem(id: string, call: ToolCall, status: string): object {
  const { name, arguments: text } = call.function;
  return { id, type: "function_call", status, call_id: call.id, name, arguments: text };
}

/** Logprobs as the Responses API has them. */
function responseLogprobs(tokens: readonly RankedToken[], top: number | undefined): object[] {
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
