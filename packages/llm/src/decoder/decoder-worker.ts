import { createReadStream } from "node:fs";
import { totalmem } from "node:os";
import { hashOfModel, openSession } from "@tritonjs/backends/onnxruntime";
import type { InferContext } from "@tritonjs/core";
import type { WorkerBatch, WorkerHost, WorkerModel } from "@tritonjs/core/backend";
import { errorFor, TritonError } from "@tritonjs/protocol";
import { shownTokens } from "../chat/answer-reader.js";
import { ChatTemplate, withTexts } from "../chat/chat-template.js";
import { forcedFormat } from "../chat/forced-calls.js";
import { type ChatImage, chatImages, imageParts } from "../chat/image-parts.js";
import { PrefixDirectory } from "../prefix-directory.js";
import type { SamplingParameters } from "../sampling/sampling-parameters.js";
import { readConstraintVocabulary } from "../structured/constraint-vocabulary.js";
import { StructuredOutput, type TokenConstraint } from "../structured/structured-output.js";
import { TextResponses } from "../text-answer.js";
import { readTextRequest, type TextRequest, toolUseOf } from "../text-request.js";
import { type ShownSpecialTokens, TextTokenizer } from "../text-tokenizer.js";
import { turns } from "../turns.js";
import {
  DECODER_DEFAULTS,
  type DecoderConfig,
  type DecoderData,
  readDecoderConfig,
} from "./decoder-settings.js";
import { bytesPerToken, type PromptImages, readDecoderGraph } from "./forward-pass.js";
import { GenerationEngine, KvBudget, type PassPadding } from "./generation-engine.js";
import { ImageEncoder, takesNoImages, tokenEmbedding } from "./image-encoder.js";
import { readModelDirectory } from "./model-files.js";
import { MOST_PREFILL_TOKENS } from "./prefill-pace.js";
import { RunningText } from "./running-text.js";

/** Entry of the workers of decoders. */
export async function load(
  data: unknown,
  info: Pick<InferContext, "device" | "modelName">,
  host: WorkerHost,
): Promise<WorkerModel> {
  const decoder = await openDecoder(data as DecoderData, info, host);
  decoder.parts.engine.report();
  return {
    ownsOutputs: false,
    details: { executionProvider: decoder.parts.provider },
    execute: async (batch) => {
      await decoder.start(batch);
      return undefined;
    },
    close: () => decoder.close(),
  };
}

/** A step has keys and values twice: its input and its output. */
const COPIES = 2;

/**
 * Opens a decoder: reads its directory and opens its session.
 *
 * @throws TritonError that names the file or the limit that is at fault
 */
async function openDecoder(
  data: DecoderData,
  instance: Pick<InferContext, "device" | "modelName">,
  { warn, report }: WorkerHost,
): Promise<Decoder> {
  const {
    directory,
    maxRunningRequests = DECODER_DEFAULTS.maxRunningRequests,
    prefillTokens,
    prefixCache = DECODER_DEFAULTS.prefixCache,
    batchInvariant = false,
    promptLookupTokens = 0,
    unheldKeywords = "refuse",
    kvCacheBytes,
    prefixCacheBytes,
    prefixDirectory,
    prefixDirectoryBytes,
    contextLength: givenLength,
    maxImages = DECODER_DEFAULTS.maxImages,
    file,
    dtype,
    ...settings
  } = data;
  const choice = { file, dtype, executionProviders: settings.executionProviders };
  const files = await readModelDirectory(directory, choice);
  const tokenizer = new TextTokenizer({ ...files, config: files.tokenizerConfig });
  const config = readDecoderConfig(files, tokenizer);
  const { modelName } = instance;
  const template = await ChatTemplate.open(directory, { modelName }).catch((error: unknown) => {
    // A model without a tokenizer_config.json takes prompts, but no chats.
    if (TritonError.from(error).code === "NOT_FOUND") return undefined;
    throw error;
  });
  const operators = await operatorsOf(files.model, [FUSED_ATTENTION, ...DYNAMIC_QUANTIZATION]);
  const isFused = operators.has(FUSED_ATTENTION);
  // The operator appends to keys and values where they are.
  const session = await openSession(files.model, instance, {
    ...settings,
    inPlace: isFused,
    onWarning: warn,
  });
  const quantized = DYNAMIC_QUANTIZATION.find((name) => operators.has(name));
  if (quantized !== undefined && !batchInvariant) {
    warn(
      `the graph ${files.model} quantises by the range of all texts of a run (${quantized}), so a text may differ with ` +
        "the texts beside it: set batchInvariant to run each text by itself, or load a graph of another dtype",
    );
  }
  const { embedding: embeddingFile, images } = files;
  const takesTokens = session.inputs.some(({ name }) => name === "input_ids");
  const open = (path: string) => openSession(path, instance, { ...settings, onWarning: warn });
  const embedder = embeddingFile === undefined || takesTokens ? undefined : await open(embeddingFile);
  const embedding = embedder && tokenEmbedding(embedder, embeddingFile!);
  const graph = readDecoderGraph(session, files.model, config, isFused, embedding);
  const imageEncoder =
    images === undefined || embedder === undefined
      ? undefined
      : await ImageEncoder.open(images, await open(images.encoder), embedder, tokenizer, maxImages);
  const contextLength = givenLength ?? config.contextLength;
  if (contextLength === undefined) {
    const text =
      `cannot open the decoder in ${directory}: expected 'max_position_embeddings' in config.json or the option ` +
      "contextLength, got neither";
    throw errorFor("INVALID_MODEL", text);
  }
  const tokenBytes = COPIES * bytesPerToken(graph.kv);
  const whole = maxRunningRequests * contextLength * tokenBytes;
  const bytes = kvCacheBytes ?? Math.max(contextLength * tokenBytes, Math.min(whole, totalmem() / 4));
  const budget = new KvBudget(Math.floor(bytes / tokenBytes));
  if (budget.tokens < 2) {
    const text =
      `cannot open the decoder in ${directory}: expected kvCacheBytes of at least ${2 * tokenBytes}, which is two ` +
      `tokens, got ${bytes}`;
    throw errorFor("INVALID_OPTION", text);
  }
  const padding: PassPadding = isFused ? "prompts" : graph.hasPositions ? "all" : "none";
  const pads = batchInvariant ? "none" : padding;
  const ownBytes = bytesPerToken(graph.kv);
  const cacheBytes =
    prefixCacheBytes ?? Math.max(DECODER_DEFAULTS.prefixCacheBytes, contextLength * ownBytes);
  const mostCached = Math.min(Math.floor(budget.tokens / 2), Math.floor(cacheBytes / ownBytes));
  const cachedTokens = prefixCache && !batchInvariant ? mostCached : 0;
  const limits = {
    contextLength,
    maxRunning: maxRunningRequests,
    // The parts of a prompt change its numbers, so they must not depend on the texts beside it.
    prefillTokens: prefillTokens ?? (batchInvariant ? MOST_PREFILL_TOKENS : undefined),
    cachedTokens,
    pads,
  };
  const keptPrefixes =
    prefixDirectory === undefined
      ? undefined
      : {
          directory: await PrefixDirectory.open(prefixDirectory, prefixDirectoryBytes, warn),
          // Keys and values also depend on the provider, by rounding. The tokenizer decides which text a token is.
          model: JSON.stringify([
            await hashOfModel(files.model),
            files.tokenizer,
            session.provider,
            ...(await hashesOf(embeddingFile, images?.encoder)),
          ]),
        };
  const engine = new GenerationEngine({ session, graph, budget, limits, sendReport: report, keptPrefixes });
  const limit =
    contextLength <= budget.tokens
      ? `the context has ${contextLength} tokens`
      : `kvCacheBytes of ${budget.tokens * tokenBytes} has room for ${budget.tokens} tokens`;
  const longest = Math.min(contextLength, budget.tokens);
  const width = session.outputs.find(({ name }) => name === "logits")!.shape.at(-1)!;
  const newStructured = () => {
    const vocabulary = readConstraintVocabulary(files.tokenizer, width > 0 ? width : undefined);
    return new StructuredOutput(vocabulary, config.endTokens, unheldKeywords === "warn" ? warn : undefined);
  };
  return new Decoder({
    modelName,
    engine,
    tokenizer,
    template,
    config,
    longest,
    limit,
    newStructured,
    provider: session.provider,
    lookupTokens: promptLookupTokens,
    imageEncoder,
  });
}

function hashesOf(...files: readonly (string | undefined)[]): Promise<readonly string[]> {
  return Promise.all(files.filter((file) => file !== undefined).map((file) => hashOfModel(file)));
}

/**
 * ONNX Runtime's operator for attention with groups, which derives the place of each token from the sum of the mask. So
 * all rows begin in the first column, and only rows without a past may have padding behind them.
 */
const FUSED_ATTENTION = "GroupQueryAttention";

/** Operators that quantise the values of a run by their range, which all texts of the run share. */
const DYNAMIC_QUANTIZATION = ["DynamicQuantizeLinear", "DynamicQuantizeMatMul", "MatMulIntegerToFloat"];

/** Those of the operators that a graph has. */
async function operatorsOf(file: string, names: readonly string[]): Promise<ReadonlySet<string>> {
  // The operator of a node is field 4, with the length of its name.
  const marks = names.map((name) => ({ name, mark: `\x22${String.fromCharCode(name.length)}${name}` }));
  const longest = Math.max(...marks.map(({ mark }) => mark.length));
  const found = new Set<string>();
  let end = Buffer.alloc(0);
  for await (const chunk of createReadStream(file, { highWaterMark: 1 << 20 }) as AsyncIterable<Buffer>) {
    const text = Buffer.concat([end, chunk]);
    for (const { name, mark } of marks) if (text.includes(mark)) found.add(name);
    end = Buffer.from(text.subarray(Math.max(0, text.length - longest + 1)));
  }
  return found;
}

/** A prompt of tokens has its text at the beginning of a single response, like a prompt of text. */
function withPrefix(
  request: TextRequest,
  prompt: readonly number[],
  tokenizer: Pick<TextTokenizer, "decode">,
): TextRequest {
  const { promptTokens, stream, excludesPrompt } = request;
  if (promptTokens === undefined || stream || excludesPrompt) return request;
  return { ...request, prefix: tokenizer.decode(prompt) };
}

/** Characters of a sample for each token of the limit: about twice as many as a token has in common text. */
const SAMPLE_CHARACTERS_PER_TOKEN = 8;

/** Tokens at the border of a sample may differ from those of the whole text, but never by a quarter. */
const CERTAIN_EXCESS = 1.25;

/** What an open decoder works with. */
interface DecoderParts {
  readonly modelName: string;
  readonly engine: GenerationEngine;
  readonly tokenizer: TextTokenizer;
  readonly template: ChatTemplate | undefined;
  readonly config: DecoderConfig;
  /** Tokens that a prompt and its text may have together. */
  readonly longest: number;
  /** Words for the reason of `longest`. */
  readonly limit: string;
  /** Opens the grammars for structured output. */
  readonly newStructured: () => StructuredOutput;
  /** The execution provider that the session runs on. */
  readonly provider: string;
  /** Largest number of tokens to guess in a step. */
  readonly lookupTokens: number;
  /** Undefined for a model of text alone. */
  readonly imageEncoder: ImageEncoder | undefined;
}

/** A decoder that is open. It makes running texts of requests. */
class Decoder {
  #structured: StructuredOutput | undefined;

  constructor(readonly parts: DecoderParts) {}

  /** Starts a request: the engine answers it from now on. A request that cannot start gets its error. */
  async start(batch: WorkerBatch): Promise<void> {
    const { tokenizer, engine } = this.parts;
    const stream = batch.stream!;
    const { signal, parameters, requestedOutputs } = batch.requests[0]!;
    const refuse = (error: unknown) => stream.sendError(0, TritonError.from(error), true);
    try {
      if (signal.aborted) return;
      const source = { inputs: batch.inputs, parameters, requestedOutputs };
      const request = readTextRequest(source, this.parts.modelName);
      const sampling = { ...this.parts.config.defaults, ...request.sampling };
      const { tokens: prompt, images } = await this.#encodePrompt(request, signal);
      const maxTokens = this.#textLength(request, prompt.length);
      const format = forcedFormat(toolUseOf(request)) ?? sampling.responseFormat;
      const shown = this.#shownSpecialTokens(request, sampling.skipSpecialTokens);
      const begin = (constraint?: TokenConstraint) => {
        const answer = withPrefix(request, prompt, tokenizer);
        const text = new RunningText({
          prompt,
          maxTokens,
          sampling,
          endTokens: this.parts.config.endTokens,
          constraint,
          shown,
          tokenizer,
          responses: new TextResponses(answer, stream, tokenizer, prompt.length),
          lookupTokens: this.parts.lookupTokens,
          images,
        });
        engine.add(text, signal);
      };
      if (format === undefined || format.type === "text") begin();
      // Later requests start while a thread reads the format.
      else {
        this.#structured ??= this.parts.newStructured();
        void engine.whileReading(this.#structured.constrain(format, signal)).then(begin).catch(refuse);
      }
    } catch (error) {
      refuse(error);
    } finally {
      engine.countTaken();
      engine.report();
    }
  }

  /** Closes the decoder when no text is left. */
  async close(): Promise<void> {
    await this.parts.engine.idle();
    await this.#structured?.close();
  }

  /**
   * Encodes the prompt of a request. Messages are rendered with the model's chat template.
   *
   * @throws TritonError INVALID_ARG if the prompt is too long for the context or its messages cannot be rendered;
   * UNSUPPORTED for messages to a model without a chat template
   */
  async #encodePrompt(
    request: TextRequest,
    signal: AbortSignal,
  ): Promise<{ readonly tokens: readonly number[]; readonly images?: PromptImages }> {
    const images = this.#imagesOf(request);
    // A chat template writes the special tokens at the beginning itself.
    const given =
      request.promptTokens === undefined
        ? await this.#encodeWithin(
            request.prompt ?? (await this.#renderMessages(request, signal)),
            request.prompt !== undefined,
            request.sampling,
            signal,
          )
        : this.#checkTokens(request.promptTokens);
    const { imageEncoder } = this.parts;
    const encoded =
      imageEncoder === undefined || given.length >= this.parts.longest
        ? { tokens: given }
        : await imageEncoder.encode(given, images);
    const { tokens } = encoded;
    if (tokens.length >= this.parts.longest) throw this.#promptTooLong(String(tokens.length));
    if (tokens.length > 0) return encoded;
    const why = `prompt of model '${this.parts.modelName}': expected at least 1 token, got none`;
    throw errorFor("INVALID_INPUT", why);
  }

  /** @throws TritonError INVALID_ARG for images to a model of text, and for images that are not in the request */
  #imagesOf({ messages = [], images: files, sampling }: TextRequest): readonly ChatImage[] {
    const { imageEncoder, modelName } = this.parts;
    const place = files.length > 0 ? "image" : imageParts(messages)[0]?.path;
    if (place === undefined) return [];
    if (imageEncoder === undefined) throw takesNoImages(modelName, place);
    if (sampling.promptLogprobs !== undefined) {
      const text = `prompt_logprobs of a request to model '${modelName}': expected none with images, because their places have no tokens`;
      throw errorFor("INVALID_INPUT", text);
    }
    const own = files.map((file, i) => ({ path: `image[${i}]`, file }));
    return [...chatImages(messages), ...own];
  }

  /** @throws TritonError INVALID_ARG for a number that is not a token */
  #checkTokens(tokens: readonly number[]): readonly number[] {
    const { length } = this.parts.tokenizer.tokens;
    const wrong = tokens.find((id) => id < 0 || id >= length);
    if (wrong === undefined) return tokens;
    const expected = `input 'input_ids' of model '${this.parts.modelName}': expected token numbers from 0 to ${length - 1}`;
    throw errorFor("INVALID_INPUT", `${expected}, got ${wrong}`);
  }

  /**
   * Encodes a text that fits the context. A megabyte takes seconds, so a text that is far too long is refused after a
   * look at its size and its beginning. The steps of running texts come between the parts of the work.
   */
  async #encodeWithin(
    given: string,
    addSpecialTokens: boolean,
    { maxTokens = 0 }: SamplingParameters,
    signal: AbortSignal,
  ): Promise<readonly number[]> {
    const { tokenizer, longest, imageEncoder } = this.parts;
    const spelled = imageEncoder?.spell(given) ?? given;
    const text = await turns.run(tokenizer.normalizeInParts(spelled), signal);
    const fewest = tokenizer.fewestTokens(text);
    if (fewest >= longest) throw this.#promptTooLong(`at least ${fewest}`);
    const sampleLength = longest * SAMPLE_CHARACTERS_PER_TOKEN;
    const encode = (part: string) => turns.run(tokenizer.encodeInParts(part, addSpecialTokens), signal);
    if (text.length > sampleLength) {
      if (fewest + maxTokens > longest)
        throw this.#textTooLong(maxTokens, longest - fewest, `at least ${fewest}`);
      const { length } = await encode(text.slice(0, sampleLength));
      if (length > longest * CERTAIN_EXCESS) throw this.#promptTooLong(`at least ${length}`);
    }
    return encode(text);
  }

  /**
   * Largest number of tokens that the text of a request may have: as requested, else the rest of the context.
   *
   * @throws TritonError INVALID_ARG if the request asks for more than is left
   */
  #textLength({ sampling }: TextRequest, promptLength: number): number {
    const left = this.parts.longest - promptLength;
    const { maxTokens } = sampling;
    if (maxTokens === undefined) return Math.min(left, this.parts.config.defaults.maxTokens ?? left);
    if (maxTokens <= left) return maxTokens;
    throw this.#textTooLong(maxTokens, left, String(promptLength));
  }

  #textTooLong(maxTokens: number, left: number, promptLength: string): TritonError {
    const text =
      `max_tokens of a request to model '${this.parts.modelName}': expected at most ${left}, because ${this.parts.limit} and the ` +
      `prompt has ${promptLength}, got ${maxTokens}`;
    return errorFor("CONTEXT_LENGTH_EXCEEDED", text);
  }

  #renderMessages(
    { messages = [], tools, templateVariables: variables, addGenerationPrompt }: TextRequest,
    signal: AbortSignal,
  ): string | Promise<string> {
    if (this.parts.template !== undefined) {
      const imageText = this.parts.imageEncoder?.imageText;
      const chat = { messages: withTexts(messages), tools, variables, addGenerationPrompt, imageText };
      return this.parts.template.renderInTurns(chat, signal);
    }
    const text = `messages to model '${this.parts.modelName}': expected a chat template in tokenizer_config.json, got none; send 'text_input'`;
    throw errorFor("MODEL_NOT_SUPPORTED", text);
  }

  #promptTooLong(got: string): TritonError {
    const text = `prompt of model '${this.parts.modelName}': expected at most ${this.parts.longest - 1} tokens, because ${this.parts.limit}, got ${got}`;
    return errorFor("CONTEXT_LENGTH_EXCEEDED", text);
  }

  /**
   * Special tokens in the text of a request: for a chat those around reasoning, and with tools those around calls;
   * otherwise none unless asked for.
   */
  #shownSpecialTokens({ messages, tools }: TextRequest, skips: boolean | undefined): ShownSpecialTokens {
    if (skips === false) return "all";
    if (messages === undefined || this.parts.template === undefined) return new Set();
    const tokens = shownTokens(this.parts.template, tools !== undefined);
    return new Set(tokens.map((token) => this.parts.tokenizer.idOf(token)).filter((id) => id !== undefined));
  }
}
