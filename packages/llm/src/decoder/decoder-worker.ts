import type { InferContext } from "@tritonjs/core";
import type { WorkerBatch, WorkerHost, WorkerModel } from "@tritonjs/core/backend";
import { errorOf, TritonError } from "@tritonjs/protocol";
import { TOOL_CALL_TOKENS } from "../chat/tool-call-family.js";
import type { ResponseFormat, SamplingParameters } from "../sampling/sampling-parameters.js";
import { TextResponses } from "../text-answer.js";
import { readTextRequest, type TextRequest } from "../text-request.js";
import type { ShownSpecialTokens } from "../text-tokenizer.js";
import { DECODER_DEFAULTS } from "./decoder-settings.js";
import { PrefixCache } from "./forward-pass.js";
import { GenerationEngine, RunningText } from "./generation-engine.js";
import { type DecoderData, type OpenDecoder, openDecoder } from "./open-decoder.js";

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
    const responses = new TextResponses(request, stream, (id) => decoder.tokenizer.textOf(id), prompt.length);
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

/**
 * Encodes the prompt of a request. Messages are rendered with the model's chat template.
 *
 * @throws TritonError INVALID_ARG if the prompt is too long for the context or its messages cannot be rendered;
 * UNSUPPORTED for messages to a model without a chat template
 */
function encodePrompt(
  request: Pick<TextRequest, "prompt" | "messages" | "tools" | "templateVariables" | "addGenerationPrompt">,
  modelName: string,
  decoder: OpenDecoder,
): readonly number[] {
  // A chat template writes the special tokens at the beginning itself.
  const text = request.prompt ?? renderMessages(request, modelName, decoder);
  const tokens = encodeWithin(text, request.prompt !== undefined, modelName, decoder);
  if (tokens.length >= longestText(decoder)) throw promptTooLong(modelName, decoder, String(tokens.length));
  if (tokens.length > 0) return tokens;
  throw errorOf("INVALID_INPUT", `prompt of model '${modelName}': expected at least 1 token, got none`);
}

/** Characters of a sample for each token of the limit: about twice as many as a token has in common text. */
const SAMPLE_CHARACTERS_PER_TOKEN = 8;

/** Tokens at the border of a sample may differ from those of the whole text, but never by a quarter. */
const CERTAIN_EXCESS = 1.25;

/**
 * Encodes a text that fits the context. All running texts wait meanwhile, and a megabyte takes seconds. So a text that
 * is far too long is refused after a look at its size and its beginning.
 */
function encodeWithin(
  text: string,
  addSpecialTokens: boolean,
  modelName: string,
  decoder: OpenDecoder,
): number[] {
  const { tokenizer } = decoder;
  const most = longestText(decoder);
  const shortest = Math.ceil(Buffer.byteLength(text) / tokenizer.longestTokenBytes);
  if (shortest >= most) throw promptTooLong(modelName, decoder, `at least ${shortest}`);
  const sampleLength = most * SAMPLE_CHARACTERS_PER_TOKEN;
  if (text.length > sampleLength) {
    const { length } = tokenizer.encode(text.slice(0, sampleLength), addSpecialTokens);
    if (length > most * CERTAIN_EXCESS) throw promptTooLong(modelName, decoder, `at least ${length}`);
  }
  return tokenizer.encode(text, addSpecialTokens);
}

/**
 * Largest number of tokens that the text of a request may have: as requested, else the rest of the context.
 *
 * @throws TritonError INVALID_ARG if the request asks for more than is left
 */
function textLength(
  { sampling }: TextRequest,
  promptLength: number,
  modelName: string,
  decoder: OpenDecoder,
): number {
  const left = longestText(decoder) - promptLength;
  const { maxTokens } = sampling;
  if (maxTokens === undefined) return Math.min(left, decoder.config.defaults.maxTokens ?? left);
  if (maxTokens <= left) return maxTokens;
  throw errorOf(
    "INVALID_INPUT",
    `max_tokens of a request to model '${modelName}': expected at most ${left}, because ${limitOf(decoder)} and the ` +
      `prompt has ${promptLength}, got ${maxTokens}`,
  );
}

function renderMessages(
  {
    messages = [],
    tools,
    templateVariables: variables,
    addGenerationPrompt,
  }: Pick<TextRequest, "messages" | "tools" | "templateVariables" | "addGenerationPrompt">,
  modelName: string,
  { template }: OpenDecoder,
): string {
  if (template === undefined) {
    const text = `messages to model '${modelName}': expected a chat template in tokenizer_config.json, got none; send 'text_input'`;
    throw errorOf("MODEL_NOT_SUPPORTED", text);
  }
  return template.render({ messages, tools, variables, addGenerationPrompt });
}

/** Tokens of a prompt and its text. */
function longestText({ contextLength, budget }: OpenDecoder): number {
  return Math.min(contextLength, budget.tokens);
}

function limitOf({ contextLength, budget, tokenBytes }: OpenDecoder): string {
  if (contextLength <= budget.tokens) return `the context has ${contextLength} tokens`;
  return `kvCacheBytes of ${budget.tokens * tokenBytes} has room for ${budget.tokens} tokens`;
}

function promptTooLong(modelName: string, decoder: OpenDecoder, got: string): TritonError {
  const text = `prompt of model '${modelName}': expected at most ${longestText(decoder) - 1} tokens, because ${limitOf(decoder)}, got ${got}`;
  return errorOf("INVALID_INPUT", text);
}

/**
 * Special tokens in the text of a request: for a chat with tools those around calls, otherwise none unless asked for.
 */
function shownSpecialTokens(
  { messages, tools }: Pick<TextRequest, "messages" | "tools">,
  { skipSpecialTokens }: SamplingParameters,
  { template, tokenizer }: Pick<OpenDecoder, "template" | "tokenizer">,
): ShownSpecialTokens {
  if (skipSpecialTokens === false) return "all";
  const family = messages !== undefined && tools !== undefined ? template?.toolCallFamily : undefined;
  if (family === undefined) return new Set();
  return new Set(
    TOOL_CALL_TOKENS[family].map((token) => tokenizer.idOf(token)).filter((id) => id !== undefined),
  );
}
