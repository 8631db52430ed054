import { isAbsolute } from "node:path";
import { fileURLToPath } from "node:url";
import {
  type Backend,
  callbackExecutor,
  type Execution,
  type ExecutionResult,
  type Executor,
  type ExecutorContext,
  findModelFile,
  gaugesOf,
  type ModelFiles,
} from "@tritonjs/core/backend";
import { DeclaredParameters, wrongParameter } from "@tritonjs/core/internal";
import { errorFor } from "@tritonjs/protocol";
import { shownTokens } from "../chat/answer-reader.js";
import { forcedCallText, forcedFormat } from "../chat/forced-calls.js";
import { LoadGauges } from "../decoder/text-generation.js";
import type { SamplingParameters } from "../sampling/sampling-parameters.js";
import { TokenSampler, tokenLogprobs } from "../sampling/token-sampler.js";
import type { TokenConstraint } from "../structured/structured-output.js";
import type { YieldedLogprob, YieldedPiece } from "../text-callback.js";
import {
  EMBEDDING_INPUTS,
  EMBEDDING_OUTPUTS,
  embeddingBatch,
  GeneratorExecutor,
  withReader,
  withRows,
} from "../text-generator.js";
import { readTextRequest, TEXT_OUTPUTS, type TextRequest, TOKEN_INPUTS, toolUseOf } from "../text-request.js";
import { DEFAULT_SEQUENCES, LlamaEngine, LlamaFile } from "./llama-engine.js";
import type { LlamaSequence, LlamaToken } from "./llama-module.js";
import { checkLlamaOptions, LLAMA_CHOICES, LLAMA_NUMBERS, type LlamaCppOptions } from "./llama-options.js";
import { LlamaTextStream } from "./llama-vocabulary.js";

/** Options of {@link llamacpp}, with the file of the model. */
export interface LlamaCppModel extends LlamaCppOptions {
  /** A file in the format GGUF; of a file in parts the first one. */
  readonly model: string | URL;
  /** Receives the warnings of llama.cpp and of the model. @default a warning of the process */
  readonly onWarning?: ((message: string) => void) | undefined;
}

/**
 * A backend that runs a GGUF file with llama.cpp, by the package `node-llama-cpp`. Its texts share the steps of
 * llama.cpp: each has a slot, and those without one wait in the model's queue. A slot keeps its last text, and the next
 * prompt that begins alike takes the slot and computes only the rest.
 *
 * The model has the tensors of `textGeneration`, so `generate`, streams and the OpenAI endpoints call it. With
 * `task: "embedding"` it has those of `textEmbedder`. llama.cpp works on threads of its own, so the event loop stays
 * free.
 *
 * @throws TritonError at `bind`: INVALID_ARG for invalid options. When an instance loads: INVALID_ARG for a file that
 * llama.cpp cannot load, UNAVAILABLE without `node-llama-cpp`
 * @example
 * ```ts
 * const llama = triton.bind({
 *   modelName: "llama",
 *   inferFunc: llamacpp({ model: "llama-3.2-1b-q4_k_m.gguf", threads: 4 }),
 * });
 * for await (const { text_output } of llama.stream({ text_input: ["Once"], stream: [true] })) {
 *   process.stdout.write(text_output!.get(0) as Uint8Array);
 * }
 * ```
 */
export function llamacpp(given: LlamaCppModel): Backend {
  checkLlamaOptions(given);
  const { model, onWarning, ...rest } = given;
  const options = { ...rest, model: model instanceof URL ? fileURLToPath(model) : model };
  const warn = onWarning ?? ((message: string) => process.emitWarning(message, "TritonWarning"));
  const isEmbedding = options.task === "embedding";
  const [inputs, outputs] = isEmbedding
    ? [withRows(EMBEDDING_INPUTS), withRows(EMBEDDING_OUTPUTS)]
    : [TOKEN_INPUTS, TEXT_OUTPUTS];
  return {
    backendName: "llamacpp",
    platform: "",
    describe: () => ({
      inputs,
      outputs,
      ...(!isEmbedding && { maxBatchSize: 0, decoupled: true, asInConfig: true }),
    }),
    completeConfig: (config) => {
      const specs = isEmbedding ? EMBEDDING_INPUTS : TOKEN_INPUTS;
      for (const spec of specs) {
        const optional = "optional" in spec && spec.optional === true;
        config.addInput({ name: spec.name, dataType: spec.dtype, dims: spec.shape, optional });
      }
      for (const { name, dtype: dataType, shape: dims } of isEmbedding ? EMBEDDING_OUTPUTS : TEXT_OUTPUTS)
        config.addOutput({ name, dataType, dims });
      if (!isEmbedding) config.setModelTransactionPolicy({ decoupled: true });
    },
    createExecutor: (context) =>
      isEmbedding ? new EmbeddingExecutor(options, context, warn) : new LlamaExecutor(options, context, warn),
  };
}

/** Turns texts into vectors, one after the other. */
class EmbeddingExecutor implements Executor {
  readonly isolation = "inline";
  readonly mustFinish = false;
  details: Readonly<Record<string, string>> = {};
  #file: LlamaFile | undefined;
  #inner: Executor | undefined;

  constructor(
    private readonly options: LlamaCppOptions & { readonly model: string },
    private readonly context: ExecutorContext,
    private readonly warn: (message: string) => void,
  ) {}

  async start(): Promise<void> {
    const { threads = 1, contextLength } = this.options;
    const onGpu = this.context.info.device.kind === "KIND_GPU";
    const file = await LlamaFile.open(this.options, onGpu, this.warn);
    this.#file = file;
    this.details = { executionProvider: file.provider };
    const contextSize = contextLength ?? Math.min(DEFAULT_EMBEDDING_CONTEXT, file.model.trainContextSize);
    const embedding = await file.model.createEmbeddingContext({ contextSize, threads });
    const embed = embeddingBatch(async (texts) => {
      const vectors: (readonly number[])[] = [];
      for (const text of texts) vectors.push((await embedding.getEmbeddingFor(text)).vector);
      return vectors;
    });
    this.#inner = callbackExecutor(embed, this.context);
    await this.#inner.start();
  }

  execute(execution: Execution): Promise<readonly ExecutionResult[] | undefined> {
    return this.#inner!.execute(execution);
  }

  async stop(): Promise<void> {
    await this.#inner?.stop();
    await this.#file?.close();
  }
}

/** Longest text of an embedding, in tokens, unless an option says otherwise. */
const DEFAULT_EMBEDDING_CONTEXT = 4096;

const PARAMETERS = new DeclaredParameters({
  write: ["prefix_directory"],
  value: [...Object.values(LLAMA_NUMBERS), ...Object.values(LLAMA_CHOICES).map(({ parameter }) => parameter)],
});

/**
 * The backend `llamacpp` for models of a repository: `<version>/model.gguf`, or the name in `default_model_filename`.
 * Its options are parameters of the configuration in snake case, or settings of the backend with hyphens.
 */
export const llamacppBackend = PARAMETERS.declaredBy(async (source) => {
  const { name, config, warn } = source;
  const options = repositoryOptions(source);
  if (options.task !== "embedding" && config.maxBatchSize !== 0) {
    const text = `model '${name}': expected max_batch_size 0, because llama.cpp forms its own batches, got ${config.maxBatchSize}`;
    throw errorFor("INVALID_CONFIG", text);
  }
  const { path } = await findModelFile(source, ["model.gguf"]);
  return llamacpp({ model: path, onWarning: warn, ...options });
});

function repositoryOptions(source: ModelFiles): LlamaCppOptions {
  const options: Record<string, unknown> = {};
  for (const [option, parameter] of Object.entries(LLAMA_NUMBERS)) {
    const text = PARAMETERS.text(source, parameter);
    if (text === undefined) continue;
    const value = Number(text);
    if (text.trim() === "" || !Number.isSafeInteger(value) || value < (parameter === "gpu_layers" ? 0 : 1)) {
      const least = parameter === "gpu_layers" ? 0 : 1;
      throw wrongParameter(source.name, parameter, `an integer of at least ${least}`, text);
    }
    options[option] = value;
  }
  const directory = PARAMETERS.text(source, "prefix_directory");
  if (directory !== undefined) {
    if (!isAbsolute(directory))
      throw wrongParameter(source.name, "prefix_directory", "an absolute path", directory);
    options.prefixDirectory = directory;
  }
  for (const [option, { parameter, values }] of Object.entries(LLAMA_CHOICES)) {
    const text = PARAMETERS.text(source, parameter);
    if (text === undefined) continue;
    const value = values.find((one) => String(one) === text);
    if (value === undefined)
      throw wrongParameter(source.name, parameter, `one of ${values.join(", ")}`, text);
    options[option] = value;
  }
  return options as LlamaCppOptions;
}

/** Parameters that llama.cpp's own sampler has with the same meaning. Others are applied here, to the scores. */
const NATIVE: ReadonlySet<string> = new Set<keyof SamplingParameters>([
  "maxTokens",
  "temperature",
  "topP",
  "topK",
  "minP",
  "seed",
  "stop",
  "stopTokenIds",
  "includeStopStrInOutput",
  "ignoreEos",
  "skipSpecialTokens",
]);

/** Seeds of llama.cpp have 32 bits. */
const SEEDS = 2 ** 32;

/** Generates texts in the slots of llama.cpp, which computes the next token of all of them in one step. */
class LlamaExecutor extends GeneratorExecutor {
  override details: Readonly<Record<string, string>> = {};
  #engine: LlamaEngine | undefined;
  readonly #gauges: LoadGauges;

  constructor(
    private readonly options: LlamaCppOptions & { readonly model: string },
    private readonly about: ExecutorContext,
    private readonly warn: (message: string) => void,
  ) {
    const { modelName, modelVersion } = about.info;
    super(
      (request, { signal }) => this.#generate(request, signal),
      (request) => this.#read(readTextRequest(request, modelName), request.signal),
      about,
      options.sequences ?? DEFAULT_SEQUENCES,
    );
    const labels = { model: modelName, version: String(modelVersion) };
    this.#gauges = new LoadGauges(gaugesOf(about), labels, about.instanceCount, about.queuedRequests);
  }

  override async start(): Promise<void> {
    await super.start();
    const { modelName, device } = this.about.info;
    const options = { ...this.options, sequences: this.capacity };
    this.#engine = await LlamaEngine.open(options, modelName, device.kind === "KIND_GPU", this.warn);
    this.details = { executionProvider: this.#engine.file.provider };
    this.#report();
  }

  override async stop(): Promise<void> {
    await super.stop();
    this.#gauges.clear();
    await this.#engine?.close();
    this.#engine = undefined;
  }

  /** Calls of tools are found in the text, and probabilities that a request wants as an output are computed. */
  #read(request: TextRequest, signal: AbortSignal): TextRequest | Promise<TextRequest> {
    const { sampling, wanted } = request;
    const isChosen = wanted.logprobs && sampling.logprobs === undefined;
    const asked = isChosen ? { ...request, sampling: { ...sampling, logprobs: 0 } } : request;
    return request.messages === undefined ? asked : this.#chat(asked, signal);
  }

  /**
   * Makes the prompt of a chat. A text that has to call a tool is held to the form of the call.
   *
   * @throws TritonError UNSUPPORTED for a file without a template, or one that does not show the calls that the request
   * asks for; INVALID_ARG if the template rejects the messages
   */
  async #chat(request: TextRequest, signal: AbortSignal): Promise<TextRequest> {
    const engine = this.#engine!;
    const { template, prompt } = await engine.render(request, signal);
    const { tools = [], wanted } = request;
    const use = toolUseOf(request);
    const responseFormat = forcedFormat(use);
    if (responseFormat !== undefined) {
      const sampling = { ...request.sampling, responseFormat };
      return { ...request, prompt, sampling, reader: forcedCallText(use) };
    }
    if (tools.length > 0 && wanted.toolCalls && template.toolCallFamily === undefined)
      throw engine.showsNoCalls();
    return withReader(request, template, prompt);
  }

  async *#generate(request: TextRequest, signal: AbortSignal): AsyncGenerator<YieldedPiece> {
    const engine = this.#engine!;
    const { tokens: prompt, maxTokens } = engine.encode(request);
    const { responseFormat } = request.sampling;
    const constraint = responseFormat && (await engine.structured(responseFormat, signal));
    try {
      yield { usage: { promptTokens: prompt.length } };
      yield* this.#generateWith(request, prompt, maxTokens, constraint, signal);
    } finally {
      constraint?.release();
    }
  }

  async *#generateWith(
    request: TextRequest,
    prompt: readonly LlamaToken[],
    maxTokens: number,
    constraint: TokenConstraint | undefined,
    signal: AbortSignal,
  ): AsyncGenerator<YieldedPiece> {
    const engine = this.#engine!;
    const { sampling } = request;
    const sequence = await engine.takeSequence(prompt);
    this.#report();
    try {
      // The last token of the prompt is computed again, because the scores after it are needed.
      await sequence.adaptStateToTokens(prompt.slice(0, -1), false);
      const text = new LlamaTextStream(engine.file.model, prompt, this.#shown(request));
      const isNative = constraint === undefined && Object.keys(sampling).every((name) => NATIVE.has(name));
      const rest = prompt.slice(sequence.nextTokenIndex);
      const chosen = isNative
        ? nativeTokens(sequence, rest, sampling)
        : this.#scoredTokens(sequence, rest, prompt, sampling, constraint);
      yield* this.#pieces(chosen, text, maxTokens, sampling, signal);
    } finally {
      engine.returnSequence(sequence, prompt.length);
      this.#report();
    }
  }

  /** Turns chosen tokens into pieces, until one of them ends the text. */
  async *#pieces(
    chosen: AsyncGenerator<ChosenToken, void>,
    text: LlamaTextStream,
    maxTokens: number,
    { ignoreEos = false, stopTokenIds = [], includeStopStrInOutput = false }: SamplingParameters,
    signal: AbortSignal,
  ): AsyncGenerator<YieldedPiece> {
    const { vocabulary } = this.#engine!;
    if (maxTokens === 0) {
      // Computes the prompt alone.
      await chosen.next();
      await chosen.return();
      yield { finishReason: "length" };
      return;
    }
    let count = 0;
    for await (const { token, logprob, isComplete } of chosen) {
      if (signal.aborted) return;
      count++;
      const logprobs = logprob && { logprobs: [logprob] };
      const ends = isComplete === true || (!ignoreEos && vocabulary.isEnd(token));
      if (ends && !includeStopStrInOutput) {
        yield { text: text.end(), tokens: 1, ...logprobs, finishReason: "stop" };
        return;
      }
      const stops = ends || stopTokenIds.includes(token);
      const isLong = count >= maxTokens;
      const piece = text.push(token) + (stops || isLong ? text.end() : "");
      const reason = stops ? "stop" : isLong ? "length" : undefined;
      yield { text: piece, tokens: 1, ...logprobs, ...(reason !== undefined && { finishReason: reason }) };
      if (reason !== undefined) return;
    }
  }

  /** Tokens that are chosen here from the scores of llama.cpp, with all parameters. */
  async *#scoredTokens(
    sequence: LlamaSequence,
    rest: readonly LlamaToken[],
    prompt: readonly LlamaToken[],
    sampling: SamplingParameters,
    constraint: TokenConstraint | undefined,
  ): AsyncGenerator<ChosenToken, void> {
    const { vocabulary, file } = this.#engine!;
    const { logprobs: count } = sampling;
    const ends = new Set([...vocabulary.endTokens, ...(sampling.stopTokenIds ?? [])]);
    const excluded = (sampling.badWords ?? []).flatMap((word) =>
      [word.trimStart(), ` ${word.trimStart()}`].map((one) => file.model.tokenize(one, false)),
    );
    const sampler = new TokenSampler(
      sampling,
      prompt,
      ends,
      excluded.filter(({ length }) => length > 0),
    );
    for (let next = rest; ; ) {
      const results = await sequence.controlledEvaluate(
        next.map((token, i) => (i < next.length - 1 ? token : [token, WITH_SCORES])),
      );
      const scores = new Float32Array(vocabulary.size).fill(Number.NEGATIVE_INFINITY);
      for (const [token, score] of results.at(-1)!.next.logits!) scores[token] = score;
      const mask = await constraint?.allowed();
      const raw = count === undefined ? scores : scores.slice();
      const token = sampler.next(scores, mask);
      const isComplete = constraint?.accept(token) === true;
      yield {
        token,
        isComplete,
        logprob: count === undefined ? undefined : this.#shownLogprob(raw, token, count),
      };
      next = [token];
    }
  }

  #shownLogprob(scores: Float32Array, token: LlamaToken, count: number): YieldedLogprob {
    const { vocabulary } = this.#engine!;
    const [chosen, ...others] = tokenLogprobs(scores, token, count).map(({ id, logprob, rank }) =>
      vocabulary.describe(id, logprob, rank),
    );
    return { ...chosen!, top: others };
  }

  #shown({ messages, tools, sampling }: TextRequest): ReadonlySet<LlamaToken> | "all" {
    const { template, vocabulary } = this.#engine!;
    if (sampling.skipSpecialTokens === false) return "all";
    if (messages === undefined || template === undefined) return new Set();
    const tokens = shownTokens(template, tools !== undefined).map((token) => vocabulary.idOf(token));
    return new Set(tokens.filter((id) => id !== undefined));
  }

  #report(): void {
    const engine = this.#engine!;
    const { running, usedTokens, totalTokens } = engine;
    this.#gauges.show({ running, waiting: 0, usedTokens, totalTokens, runs: 0 });
  }
}

/** A token that was chosen after a prompt. */
interface ChosenToken {
  readonly token: LlamaToken;
  readonly logprob?: YieldedLogprob | undefined;
  /** True if it completes the format of the text. */
  readonly isComplete?: boolean;
}

const WITH_SCORES = {
  generateNext: { logits: true, options: { temperature: 0, topK: 0, topP: 1, minP: 0 } },
} as const;

/** Tokens that llama.cpp chooses. */
async function* nativeTokens(
  sequence: LlamaSequence,
  rest: readonly LlamaToken[],
  { temperature = 0, topK = 0, topP = 1, minP = 0, seed }: SamplingParameters,
): AsyncGenerator<ChosenToken, void> {
  const seeded = seed !== undefined && { seed: ((seed % SEEDS) + SEEDS) % SEEDS };
  const options = { temperature, topK, topP, minP, yieldEogToken: true, ...seeded };
  for await (const token of sequence.evaluate(rest, options)) yield { token };
}
