import { type ExecutorContext, gaugesOf } from "@tritonjs/core/backend";
import { shownTokens } from "../chat/answer-reader.js";
import { forcedCallText, forcedFormat } from "../chat/forced-calls.js";
import { LoadGauges } from "../decoder/text-generation.js";
import type { SamplingParameters } from "../sampling/sampling-parameters.js";
import { TokenSampler, tokenLogprobs } from "../sampling/token-sampler.js";
import type { TokenConstraint } from "../structured/structured-output.js";
import type { YieldedLogprob, YieldedPiece } from "../text-callback.js";
import { GeneratorExecutor, withReader } from "../text-generator.js";
import { readTextRequest, type TextRequest, toolUseOf } from "../text-request.js";
import { DEFAULT_SEQUENCES, LlamaEngine } from "./llama-engine.js";
import type { LlamaSequence, LlamaToken } from "./llama-module.js";
import type { LlamaCppOptions } from "./llama-options.js";
import { LlamaTextStream } from "./llama-vocabulary.js";

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
export class LlamaExecutor extends GeneratorExecutor {
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
