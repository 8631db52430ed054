import type { InferenceResponse, InferInit, PinnedModel, RequestHandle } from "@tritonjs/core/frontend";
import { ClientGone } from "@tritonjs/http/frontend";
import { TritonError } from "@tritonjs/protocol";
import type { OpenAiExchange } from "../generation/exchange.js";
import { traceModelRequest } from "../generation/trace-model-request.js";
import type { EmbeddingCall } from "./embedding-inputs.js";
import type { EmbeddingModel } from "./embedding-model.js";
import { countedTokens, readVectors, type Vector } from "./embedding-output.js";

/**
 * Largest number of model requests in flight for one client's list, so that one long list does not fill the model's
 * queue.
 */
const MOST_AT_A_TIME = 8;

/** The embeddings of all inputs, in their order. */
export interface Embeddings {
  readonly vectors: readonly Vector[];
  /** Tokens of all inputs; undefined if the model does not report them. */
  readonly tokens: number | undefined;
}

/**
 * Runs requests for embeddings, several at a time. The first error ends them all, and so does a client that leaves.
 *
 * @throws the first error of the model; ClientGone when the client leaves
 */
export async function runEmbeddings(
  exchange: OpenAiExchange,
  pinned: PinnedModel,
  model: EmbeddingModel,
  calls: readonly EmbeddingCall[],
): Promise<Embeddings> {
  const running = new Set<RequestHandle>();
  let over = false;
  const cancelAll = () => {
    over = true;
    for (const handle of running) handle.cancel();
  };
  const forget = exchange.request.onGone(cancelAll);
  const answers: InferenceResponse[] = new Array(calls.length);
  let next = 0;
  const work = async () => {
    while (next < calls.length && !over) {
      const index = next++;
      answers[index] = await runCall(exchange, pinned, model, calls[index]!, index, running);
    }
  };
  try {
    await Promise.all(Array.from({ length: Math.min(MOST_AT_A_TIME, calls.length) }, work));
  } catch (error) {
    cancelAll();
    if (exchange.request.gone) throw new ClientGone(error);
    if (TritonError.is(error) && error.code === "UNAVAILABLE") await exchange.service.refusalTurn?.();
    throw error;
  } finally {
    forget();
  }
  if (exchange.request.gone || over) throw new ClientGone();
  const counts = answers.map((answer) => countedTokens(answer));
  return {
    vectors: answers.flatMap((answer, index) => readVectors(model, answer, calls[index]!.rows)),
    tokens: counts.every((count) => count !== undefined)
      ? counts.reduce((sum, count) => sum + count, 0)
      : undefined,
  };
}

function runCall(
  exchange: OpenAiExchange,
  pinned: PinnedModel,
  { output, countsTokens }: EmbeddingModel,
  { inputs }: EmbeddingCall,
  index: number,
  running: Set<RequestHandle>,
): Promise<InferenceResponse> {
  const requestedOutputs = countsTokens ? [output, "num_input_tokens"] : [output];
  return new Promise((resolve, reject) => {
    let answer: InferenceResponse | undefined;
    const { requestId } = exchange;
    const id = index === 0 ? requestId : `${requestId}-${index}`;
    const trace = traceModelRequest(exchange, pinned.name);
    const init: InferInit = { id, inputs, requestedOutputs, trace: trace?.request };
    const sent = pinned.inService().infer(init, (outcome, final, handle) => {
      if (outcome !== undefined) trace?.responded();
      if (TritonError.is(outcome)) reject(outcome);
      else answer ??= outcome;
      if (!final) return;
      running.delete(handle);
      if (answer !== undefined) resolve(answer);
      else
        reject(new TritonError("INTERNAL", `model '${pinned.name}': expected an embedding, got no response`));
    });
    if (!sent.settled) running.add(sent);
  });
}
