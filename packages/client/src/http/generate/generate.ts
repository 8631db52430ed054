import { TritonError } from "@tritonjs/protocol";
import { excerpt } from "../carrier/answer-error.js";
import type { CallRequest, HttpCalls } from "../carrier/http-calls.js";
import type { ModelCallOptions } from "../client-options.js";
import { type AnswerJson, type AnswerJsonObject, isObject, parseAnswerJson } from "../json/parse-json.js";
import { type JsonSource, toJson } from "../json/write-json.js";
import { modelPath } from "../paths.js";
import { readEvents } from "./read-events.js";

/** Inputs of the model by name, and parameters beside them. */
export type GenerateInputs = Readonly<Record<string, JsonSource | undefined>>;

/** One response: outputs and parameters by name. An output of one element is that element, others are flat arrays. */
export interface GenerateResponse extends AnswerJsonObject {
  model_name: string;
  model_version: string;
}

/** Generates one response to one request. */
export async function generate(
  calls: HttpCalls,
  modelName: string,
  inputs: GenerateInputs,
  { modelVersion, ...call }: ModelCallOptions,
): Promise<GenerateResponse> {
  const answer = await calls.request(outgoing(modelPath(modelName, modelVersion, "generate"), inputs), call);
  return toResponse(new TextDecoder().decode(answer.body));
}

/** Yields the responses to one request as they come. */
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
    throw new TritonError("INTERNAL", `cannot read the server's response: expected JSON${excerpt(text)}`, {
      reason: "INVALID_ANSWER",
      cause,
    });
  }
  if (!isObject(json))
    throw new TritonError(
      "INTERNAL",
      `cannot read the server's response: expected an object${excerpt(text)}`,
      {
        reason: "INVALID_ANSWER",
      },
    );
  if (typeof json.error === "string" && json.model_name === undefined) {
    throw new TritonError("UNKNOWN", json.error);
  }
  return json as GenerateResponse;
}
