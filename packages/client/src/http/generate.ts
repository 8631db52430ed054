import {
  type AnswerJson,
  type AnswerJsonObject,
  isJsonObject,
  type JsonSource,
  parseAnswerJson,
  TritonError,
  toJson,
} from "@tritonjs/protocol";
import { invalidAnswer } from "../caller.js";
import type { ModelCallOptions } from "./client-options.js";
import { type CallRequest, excerpt, type HttpCalls } from "./http-calls.js";
import { modelPath } from "./http-carrier.js";

/** Inputs of the model by name, and parameters beside them. */
export type GenerateInputs = Readonly<Record<string, JsonSource | undefined>>;

/** One response: outputs and parameters by name. An output of one element is that element, others are flat arrays. */
export interface GenerateResponse extends AnswerJsonObject {
  model_name: string;
  model_version: string;
}

export async function generate(
  calls: HttpCalls,
  modelName: string,
  inputs: GenerateInputs,
  { modelVersion, ...call }: ModelCallOptions,
): Promise<GenerateResponse> {
  const answer = await calls.request(outgoing(modelPath(modelName, modelVersion, "generate"), inputs), call);
  return toResponse(new TextDecoder().decode(answer.body));
}

export async function* generateStream(
  calls: HttpCalls,
  modelName: string,
  inputs: GenerateInputs,
  { modelVersion, ...call }: ModelCallOptions,
): AsyncGenerator<GenerateResponse, void, void> {
  const path = modelPath(modelName, modelVersion, "generate_stream");
  const chunks = await calls.stream(outgoing(path, inputs), "text/event-stream", call);
  for await (const event of readEvents(chunks)) yield toResponse(event);
}

function outgoing(path: string, inputs: GenerateInputs): CallRequest {
  const headers = { "content-type": "application/json" };
  return { method: "POST", path, headers, body: toJson(inputs), idempotent: false, balanced: true };
}

/** An error in an event, or with status 200, comes without its code. */
function toResponse(text: string): GenerateResponse {
  let json: AnswerJson;
  try {
    json = parseAnswerJson(text);
  } catch (cause) {
    throw invalidAnswer(`cannot read the server's response: expected JSON${excerpt(text)}`, cause);
  }
  if (!isJsonObject(json))
    throw invalidAnswer(`cannot read the server's response: expected an object${excerpt(text)}`);
  if (typeof json.error === "string" && json.model_name === undefined) {
    throw new TritonError("UNKNOWN", json.error);
  }
  return json as GenerateResponse;
}

/**
 * Yields the data of server-sent events. Lines end with CR, LF or both. Lines of `data` are joined. Comments and other
 * fields are skipped. An event that the end of the stream cuts off is yielded too, because its incomplete data reveals
 * the loss.
 */
export async function* readEvents(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<string, void, void> {
  const lines = new LineSplitter();
  let data: string[] = [];
  for await (const line of lines.split(chunks)) {
    if (line === "") {
      if (data.length > 0) yield data.join("\n");
      data = [];
    } else if (line.startsWith("data:")) {
      data.push(line.slice(line[5] === " " ? 6 : 5));
    } else if (line === "data") {
      data.push("");
    }
  }
  if (data.length > 0) yield data.join("\n");
}

const LINE_END = /\r\n|\r|\n/;

/** Splits text that comes in chunks into lines. A line is joined once it is complete. */
class LineSplitter {
  readonly #decoder = new TextDecoder();
  #parts: string[] = [];
  /** True when the last chunk ended with CR: an LF at the start of the next chunk belongs to it. */
  #skipLineFeed = false;

  async *split(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<string, void, void> {
    for await (const chunk of chunks) yield* this.#take(this.#decoder.decode(chunk, { stream: true }));
    yield* this.#take(this.#decoder.decode());
    if (this.#parts.length > 0) yield this.#parts.join("");
  }

  *#take(text: string): Generator<string, void, void> {
    if (text === "") return;
    const rest = this.#skipLineFeed && text.startsWith("\n") ? text.slice(1) : text;
    this.#skipLineFeed = text.endsWith("\r");
    const pieces = rest.split(LINE_END);
    for (const piece of pieces.slice(0, -1)) {
      this.#parts.push(piece);
      yield this.#parts.join("");
      this.#parts = [];
    }
    const last = pieces.at(-1)!;
    if (last !== "") this.#parts.push(last);
  }
}
