import { TritonError } from "@tritonjs/core";
import type { GeneratorRequest, SamplingParameters, TextCallback, YieldedPiece } from "@tritonjs/llm";
import { EventSourceParserStream } from "eventsource-parser/stream";
import { remoteError } from "./remote-error.js";

/** Where an OpenAI-compatible server is. */
export interface RemoteServer {
  /** Address of its API, such as `https://api.openai.com/v1`. */
  readonly baseUrl: string;
  /** Name of the model there. */
  readonly model: string;
  readonly apiKey?: string | undefined;
}

/** A chunk of a stream of chat completions or of completions. */
interface Chunk {
  readonly choices?: readonly {
    readonly text?: string;
    readonly delta?: {
      readonly content?: string | null;
      readonly tool_calls?: readonly {
        readonly index: number;
        readonly id?: string;
        readonly function?: { readonly name?: string; readonly arguments?: string };
      }[];
    };
    readonly finish_reason?: string | null;
  }[];
  readonly usage?: { readonly prompt_tokens?: number; readonly completion_tokens?: number } | null;
  readonly error?: { readonly message?: string };
}

/**
 * A callback for `textGenerator` that asks an OpenAI-compatible server. Its stream is read as fast as our client reads
 * ours, and its request ends with ours.
 */
export function remoteOpenAi(server: RemoteServer): TextCallback {
  return async function* (request, { signal }) {
    const response = await post(server, request, signal);
    const events = response
      .body!.pipeThrough(new TextDecoderStream())
      .pipeThrough(new EventSourceParserStream({ onError: "terminate" }));
    for await (const { data } of events) {
      if (data === "[DONE]") return;
      yield* piecesOf(JSON.parse(data) as Chunk);
    }
    throw new TritonError("UNAVAILABLE", "the remote server ended its stream too early");
  };
}

async function post(
  { baseUrl, model, apiKey }: RemoteServer,
  request: GeneratorRequest,
  signal: AbortSignal,
): Promise<Response> {
  const { messages, prompt, sampling } = request;
  const chat = messages !== undefined;
  const body = {
    model,
    ...(chat ? { messages } : { prompt }),
    ...demandsOf(request),
    ...fieldsOf(sampling),
    stream: true,
    stream_options: { include_usage: true },
  };
  const headers = {
    "content-type": "application/json",
    ...(apiKey && { authorization: `Bearer ${apiKey}` }),
  };
  const url = `${baseUrl}/${chat ? "chat/completions" : "completions"}`;
  let response: Response;
  try {
    response = await fetch(url, { method: "POST", headers, body: JSON.stringify(body), signal });
  } catch (cause) {
    throw new TritonError("UNAVAILABLE", "cannot reach the remote server", { cause });
  }
  if (!response.ok) throw await remoteError(response);
  return response;
}

/** What the remote server holds its answer to, so that the model can declare that it obeys. */
function demandsOf({ tools, toolChoice, parallelToolCalls, responseFormat: format }: GeneratorRequest) {
  const { type, ...rest } = format ?? { type: "text" };
  return {
    ...(tools && { tools, parallel_tool_calls: parallelToolCalls }),
    tool_choice: typeof toolChoice === "object" ? { type: "function", function: toolChoice } : toolChoice,
    ...(type !== "text" && {
      response_format: { type, ...(type === "json_schema" && { json_schema: { name: "answer", ...rest } }) },
    }),
  };
}

/** The fields of OpenAI. Undefined ones are not sent. */
function fieldsOf(sampling: SamplingParameters) {
  return {
    max_tokens: sampling.maxTokens,
    temperature: sampling.temperature,
    top_p: sampling.topP,
    seed: sampling.seed,
    stop: sampling.stop,
    presence_penalty: sampling.presencePenalty,
    frequency_penalty: sampling.frequencyPenalty,
  };
}

function* piecesOf({ choices = [], usage, error }: Chunk): Generator<YieldedPiece> {
  if (error !== undefined) {
    throw new TritonError("INTERNAL", `the remote server failed: ${error.message ?? "without a message"}`);
  }
  for (const { text, delta, finish_reason } of choices) {
    const content = text ?? delta?.content;
    if (content) yield content;
    for (const { index, id, function: call } of delta?.tool_calls ?? []) {
      yield {
        toolCall: {
          index,
          ...(id && { id }),
          ...(call?.name && { name: call.name }),
          arguments: call?.arguments ?? "",
        },
      };
    }
    if (finish_reason) yield { finishReason: reasonOf(finish_reason) };
  }
  if (usage) {
    yield {
      usage: { promptTokens: usage.prompt_tokens ?? 0, completionTokens: usage.completion_tokens ?? 0 },
    };
  }
}

function reasonOf(reason: string) {
  return reason === "length" || reason === "tool_calls" || reason === "content_filter" ? reason : "stop";
}
