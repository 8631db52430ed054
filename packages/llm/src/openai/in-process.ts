import type { Triton } from "@tritonjs/core";
import { errorFor } from "@tritonjs/protocol";
import { serviceOf } from "@tritonjs/server";
import { embeddingCalls, embeddingModelOf } from "./embeddings.js";
import { type OpenAiFetchHandlerOptions, openAiFetchHandler } from "./index.js";

/** The parts of a `Triton` that frameworks call. */
export type InProcessTriton = Pick<Triton, "server" | "infer" | "ready">;

/** Never looked up: the requests stay in the process. */
export const BASE_URL = "http://tritonjs.invalid/v1";

/** Answers requests to the OpenAI endpoints in process, as `fetch` answers those to a server. */
export function inProcessFetch(triton: InProcessTriton, options: OpenAiFetchHandlerOptions): typeof fetch {
  const handler = openAiFetchHandler(triton, options);
  return async (input, init) => {
    await modelsAreLoaded(triton);
    return handler(new Request(input, init));
  };
}

/** Waits for models that are still loading, as a call of a model does. A model that failed is refused by its name. */
async function modelsAreLoaded(triton: InProcessTriton): Promise<void> {
  await triton.ready().catch(() => {});
}

/**
 * Embeds texts by calls of the model itself, in its batches.
 *
 * @throws TritonError for an unknown model and one that makes no embeddings of texts, and as the model does
 */
export async function embedTexts(
  triton: InProcessTriton,
  modelName: string,
  texts: readonly string[],
  signal?: AbortSignal,
): Promise<{ readonly embeddings: number[][]; readonly tokens: number | undefined }> {
  await modelsAreLoaded(triton);
  const model = embeddingModelOf(serviceOf(triton).modelConfig(modelName, ""));
  if (model.requestInput !== undefined) {
    const text = `model '${modelName}' takes JSON of vLLM: embed with the OpenAI endpoint instead`;
    throw errorFor("MODEL_NOT_SUPPORTED", text);
  }
  const calls = embeddingCalls(model, { inputs: texts, dimensions: undefined });
  const options = signal === undefined ? {} : { signal };
  const answers = await Promise.all(
    calls.map(({ inputs }) => triton.infer(modelName, Object.fromEntries(inputs), options)),
  );
  const embeddings = answers.flatMap((answer, i) => {
    const { data } = answer[model.output] as { readonly data: Float32Array | Float64Array };
    const { rows } = calls[i]!;
    const size = data.length / rows;
    return Array.from({ length: rows }, (_, row) => Array.from(data.subarray(row * size, (row + 1) * size)));
  });
  const counts = answers.map(({ num_input_tokens }) => tokensOf(num_input_tokens));
  return { embeddings, tokens: counts.reduce((sum, count) => sum && count && sum + count, 0) || undefined };
}

function tokensOf(counts: unknown): number | undefined {
  const { data } = (counts ?? {}) as { readonly data?: Iterable<number | bigint> };
  return data && [...data].reduce<number>((sum, count) => sum + Number(count), 0);
}

interface RankedAnswer {
  readonly results: readonly { readonly index: number; readonly relevance_score: number }[];
}

/**
 * Ranks documents by their scores with a query.
 *
 * @throws TritonError with the words of the endpoint
 */
export async function rankTexts(
  send: typeof fetch,
  modelName: string,
  query: string,
  documents: readonly string[],
  most: number | undefined,
  signal: AbortSignal | undefined,
): Promise<{ readonly index: number; readonly score: number }[]> {
  const body = { model: modelName, query, documents, top_n: most, return_documents: false };
  const answer = await postJson(send, "/rerank", body, signal);
  const { results } = (await answer.json()) as RankedAnswer;
  return results.map(({ index, relevance_score }) => ({ index, score: relevance_score }));
}

/**
 * Sends a request to an endpoint.
 *
 * @throws TritonError INVALID_ARG with the message of an answer that is an error
 */
export async function postJson(
  send: typeof fetch,
  path: string,
  body: { readonly model: string },
  signal: AbortSignal | undefined,
): Promise<Response> {
  const answer = await send(`${BASE_URL}${path}`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
    signal: signal ?? null,
  });
  if (answer.ok) return answer;
  const { error } = (await answer.json().catch(() => ({}))) as { error?: { message?: string } };
  throw errorFor("INVALID_INPUT", `model '${body.model}': ${error?.message ?? `status ${answer.status}`}`);
}
