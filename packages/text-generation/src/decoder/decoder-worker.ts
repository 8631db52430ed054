import type { InferContext } from "@tritonjs/core";
import type { WorkerBatch, WorkerHost, WorkerModel } from "@tritonjs/core/backend";
import { TritonError } from "@tritonjs/protocol";
import { readTextRequest } from "../request/read-text-request.js";
import type { ResponseFormat } from "../sampling/sampling-parameters.js";
import { DECODER_DEFAULTS } from "./decoder-options.js";
import { GenerationEngine } from "./generation-engine.js";
import { type DecoderData, type OpenDecoder, openDecoder } from "./open-decoder.js";
import { PrefixCache } from "./prefix-cache.js";
import { encodePrompt, textLength } from "./request-prompt.js";
import { RunningText } from "./running-text.js";
import { shownSpecialTokens } from "./shown-special-tokens.js";
import { TextResponses } from "./text-responses.js";

/** Format of a request that asks for none. */
const ANY_TEXT: ResponseFormat = { type: "text" };

/** Entry of the workers of decoders. */
export async function load(
  data: unknown,
  info: Pick<InferContext, "device" | "modelName">,
  host: WorkerHost,
): Promise<WorkerModel> {
  const options = data as DecoderData;
  const decoder = await openDecoder(options, info, host);
  const { session, graph, budget } = decoder;
  const cached = (options.prefixCache ?? DECODER_DEFAULTS.prefixCache) ? budget.tokens / 2 : 0;
  const engine = new GenerationEngine({
    session,
    graph,
    budget,
    cache: new PrefixCache(graph.kv, Math.floor(cached)),
    maxRunning: options.maxRunningRequests ?? DECODER_DEFAULTS.maxRunningRequests,
    prefillTokens: options.prefillTokens ?? DECODER_DEFAULTS.prefillTokens,
    pads: decoder.pads,
    contextLength: decoder.contextLength,
    report: host.report,
  });
  engine.report();
  return {
    ownsOutputs: false,
    details: { executionProvider: session.provider },
    execute: async (batch) => {
      await start(batch, info.modelName, decoder, engine);
      return undefined;
    },
    close: () => engine.idle(),
  };
}

/** Starts a request: the engine answers it from now on. A request that cannot start gets its error. */
async function start(
  batch: WorkerBatch,
  modelName: string,
  decoder: OpenDecoder,
  engine: GenerationEngine,
): Promise<void> {
  const stream = batch.stream!;
  const { signal, parameters, requestedOutputs } = batch.requests[0]!;
  try {
    if (signal.aborted) return;
    const request = readTextRequest({ inputs: batch.inputs, parameters, requestedOutputs }, modelName);
    const sampling = { ...decoder.config.defaults, ...request.sampling };
    const prompt = encodePrompt(request, modelName, decoder);
    const maxTokens = textLength(request, prompt.length, modelName, decoder);
    const { responseFormat = ANY_TEXT } = sampling;
    const constraint =
      responseFormat.type === "text" ? undefined : await decoder.structured().constrain(responseFormat);
    const responses = new TextResponses(request, stream, decoder.tokenizer, prompt.length);
    engine.add(
      new RunningText({
        prompt,
        maxTokens,
        sampling,
        endTokens: decoder.config.endTokens,
        constraint,
        shown: shownSpecialTokens(request, sampling, decoder),
        tokenizer: decoder.tokenizer,
        responses,
      }),
      signal,
    );
  } catch (error) {
    stream.sendError(0, TritonError.from(error), true);
  } finally {
    engine.countTaken();
    engine.report();
  }
}
