import { AsyncResource } from "node:async_hooks";
import { setImmediate } from "node:timers/promises";
import { batch, type InferContext, type TensorSpec } from "@tritonjs/core";
import {
  callbackExecutor,
  type ExecutableRequest,
  type Execution,
  type Executor,
  type ExecutorContext,
  type TypedBackend,
} from "@tritonjs/core/backend";
import { errorFor, onAbort, TritonError } from "@tritonjs/protocol";
import { createAnswerReader } from "./chat/answer-reader.js";
import { type ChatMessage, type ChatTool, withTexts } from "./chat/chat-template.js";
import type { ReasoningForm } from "./chat/reasoning-form.js";
import type { ToolCallFamily } from "./chat/tool-call-family.js";
import { invalidParameter } from "./sampling/sampling-parameters.js";
import { TextAnswer } from "./text-answer.js";
import { readPiece, type TextCallback, type TextGenerationContext } from "./text-callback.js";
import {
  type GeneratorRequest,
  readTextRequest,
  TEXT_INPUTS,
  TEXT_OUTPUTS,
  type TextRequest,
} from "./text-request.js";

/** A template that makes a prompt of a chat. A {@link ChatTemplate} is one. */
interface PromptTemplate {
  /**
   * @param chat `variables`: further variables, such as `enable_thinking`; `addGenerationPrompt`: true to end the prompt
   * with the beginning of the answer
   */
  render(chat: {
    readonly messages: readonly ChatMessage[];
    readonly tools?: readonly ChatTool[] | undefined;
    readonly variables?: Readonly<Record<string, unknown>> | undefined;
    readonly addGenerationPrompt: boolean;
  }): string;
  /**
   * Renders like `render`, in turns of the event loop. Long chats then do not hold up other requests.
   *
   * @param waiting ends the work when `aborted` becomes true
   */
  renderInTurns?(
    chat: Parameters<PromptTemplate["render"]>[0],
    waiting?: { readonly aborted: boolean },
  ): string | Promise<string>;
  /** Form in which the model writes calls of tools. With it, calls in the text are found. */
  readonly toolCallFamily?: ToolCallFamily | undefined;
  /** Form in which the model writes its reasoning. With it, reasoning is found for requests that ask for it. */
  readonly reasoning?: ReasoningForm | undefined;
}

/** Options of {@link textGenerator}. */
export interface TextGeneratorOptions {
  /**
   * Number of requests that an instance generates text for at a time. Others wait in the model's queue.
   * @default 256, as vLLM: engines batch by themselves, and the limit only bounds memory
   */
  readonly concurrency?: number;
  /**
   * Makes the prompt of a chat. The callback then always gets a `prompt`, and for a chat also its `messages`. Calls of
   * tools and reasoning in the text are found if the template's `toolCallFamily` and `reasoning` are known.
   * @default none: the callback gets `messages` or a `prompt`
   */
  readonly chatTemplate?: PromptTemplate;
  /**
   * What the callback holds its answers to: `toolChoice` to a call of a tool that a request demands, `responseFormat` to
   * the structure of its text. A request for anything else is refused, because nothing would hold the model to it.
   * @default none
   */
  readonly obeys?: readonly (keyof typeof OBEYED)[];
}

/** Fields of a request that a callback may obey, with what they demand. */
const OBEYED = {
  toolChoice: { field: "tool_choice", expected: "none or auto", demand: "a call of a tool" },
  responseFormat: { field: "response_format", expected: "text", demand: "a structure of its text" },
} as const;

const DEFAULT_CONCURRENCY = 256;

/**
 * Makes a model of a function that generates text. The function generates it itself, or calls an engine or a server.
 * The model has the inputs and outputs of vLLM's Triton backend, with those for chats ({@link TEXT_INPUTS},
 * {@link TEXT_OUTPUTS}). `generate`, `generate_stream`, gRPC streams and the OpenAI endpoints all call it.
 *
 * The model does the following, so the callback need not do it:
 *
 * - **Streams.** A request with `stream` gets a response for each piece, as fast as the client reads. Any other request
 *   gets one response with the whole text.
 * - **Stop texts.** `sampling.stop` ends the text, also across pieces.
 * - **Limits.** `sampling.maxTokens` ends the text at that number of tokens. A piece counts as one token unless it
 *   says `tokens`. A callback that passes the limit on to its engine generates nothing in vain.
 * - **Cancellation.** When the client leaves or the time is over, `context.signal` is aborted and `return()` of the
 *   generator runs, so its `finally` blocks do.
 *
 * An error before the first piece answers the request with its status. A later error ends the stream with an error
 * response. The queue of the model comes from `config.batcher` of `bind`: priorities, size limits, time limits.
 *
 * @throws TritonError INVALID_ARG for wrong options.
 * @example
 * ```ts
 * const handle = triton.bind({
 *   modelName: "parrot",
 *   inferFunc: textGenerator(async function* ({ messages, prompt, sampling }, { signal }) {
 *     const words = (prompt ?? String(messages?.at(-1)?.content)).split(" ");
 *     for (const word of words.slice(0, sampling.maxTokens)) {
 *       if (signal.aborted) return;
 *       yield `${word} `;
 *     }
 *     yield { usage: { promptTokens: words.length } };
 *   }),
 * });
 * for await (const { text_output } of handle.stream({ text_input: ["hello you"], stream: [true] })) {
 *   process.stdout.write(text_output.text());
 * }
 * ```
 */
export function textGenerator(
  callback: TextCallback,
  options: TextGeneratorOptions = {},
): TypedBackend<typeof TEXT_INPUTS, typeof TEXT_OUTPUTS> {
  const { concurrency = DEFAULT_CONCURRENCY, chatTemplate, obeys = [] } = options;
  checkOptions(callback, options);
  const read: ReadRequest = (request, modelName) => {
    const given = readTextRequest(request, modelName);
    refuseDemands(given, obeys, modelName);
    return chatTemplate === undefined ? given : withTemplate(given, chatTemplate, request.signal);
  };
  return {
    backendName: "javascript",
    platform: "",
    describe: () => ({ inputs: TEXT_INPUTS, outputs: TEXT_OUTPUTS, maxBatchSize: 0, decoupled: true }),
    createExecutor: (context) =>
      new GeneratorExecutor(
        (request, about) => callback(givenOf(request), about),
        read,
        context,
        concurrency,
      ),
  };
}

function givenOf({
  prompt,
  messages,
  tools,
  toolChoice,
  parallelToolCalls,
  templateVariables,
  addGenerationPrompt,
  sampling,
}: TextRequest): GeneratorRequest {
  const { responseFormat } = sampling;
  const chat = { messages, tools, toolChoice, parallelToolCalls, templateVariables, addGenerationPrompt };
  return { prompt, ...chat, sampling, responseFormat };
}

/** @throws TritonError INVALID_ARG for a demand that the callback does not obey, with the field and what to do */
function refuseDemands(
  { toolChoice, sampling: { responseFormat } }: TextRequest,
  obeys: NonNullable<TextGeneratorOptions["obeys"]>,
  modelName: string,
): void {
  const demands = {
    toolChoice: toolChoice === "auto" || toolChoice === "none" ? undefined : toolChoice,
    responseFormat: responseFormat?.type === "text" ? undefined : responseFormat?.type,
  };
  for (const [name, demanded] of Object.entries(demands) as [keyof typeof OBEYED, unknown][]) {
    if (demanded === undefined || obeys.includes(name)) continue;
    const { field, expected, demand } = OBEYED[name];
    const why = `because nothing holds the callback of model '${modelName}' to ${demand}`;
    const how = `a callback that obeys it declares textGenerator(callback, { obeys: ["${name}"] })`;
    throw invalidParameter(field, `${expected}, ${why} (${how})`, demanded);
  }
}

function checkOptions(callback: unknown, options: TextGeneratorOptions): void {
  if (typeof callback !== "function") {
    throw invalidOption(`callback: expected a function, got ${typeof callback}`);
  }
  const known = ["concurrency", "chatTemplate", "obeys"];
  const unknown = Object.keys(options).find((name) => !known.includes(name));
  if (unknown !== undefined) {
    throw invalidOption(`unknown option '${unknown}': expected ${known.join(", ")}`);
  }
  const { concurrency = DEFAULT_CONCURRENCY, chatTemplate, obeys = [] } = options;
  if (!(Number.isSafeInteger(concurrency) || concurrency === Number.POSITIVE_INFINITY) || concurrency < 1) {
    throw invalidOption(`concurrency: expected an integer of at least 1, got ${concurrency}`);
  }
  if (chatTemplate !== undefined && typeof chatTemplate?.render !== "function") {
    throw invalidOption("chatTemplate: expected an object with render(), such as a ChatTemplate");
  }
  if (!Array.isArray(obeys) || !obeys.every((name) => Object.hasOwn(OBEYED, name))) {
    const expected = `a list of ${Object.keys(OBEYED).join(" and ")}`;
    throw invalidOption(`obeys: expected ${expected}, got ${JSON.stringify(obeys)}`);
  }
}

function invalidOption(message: string): TritonError {
  return errorFor("INVALID_OPTION", `textGenerator(): ${message}`);
}

function withTemplate(
  request: TextRequest,
  template: PromptTemplate,
  waiting: { readonly aborted: boolean },
): TextRequest | Promise<TextRequest> {
  const { messages, tools, templateVariables: variables, addGenerationPrompt } = request;
  if (messages === undefined) return request;
  const chat = { messages: withTexts(messages), tools, variables, addGenerationPrompt };
  const prompt = template.renderInTurns?.(chat, waiting) ?? template.render(chat);
  return typeof prompt === "string"
    ? withReader(request, template, prompt)
    : prompt.then((text) => withReader(request, template, text));
}

/**
 * Adds the prompt of a chat, and the reader of its answer: for calls if the request has tools, and for reasoning if it
 * asks for the output. A text with a structure has no reasoning.
 */
export function withReader(
  request: TextRequest,
  { toolCallFamily, reasoning }: Pick<PromptTemplate, "toolCallFamily" | "reasoning">,
  prompt: string,
): TextRequest {
  const { tools = [], wanted, sampling } = request;
  const separates = wanted.reasoning && (sampling.responseFormat?.type ?? "text") === "text";
  // The channels of harmony are not content, whether or not the request has tools.
  const reads = tools.length > 0 || (separates && toolCallFamily === "harmony");
  const reader = createAnswerReader({
    family: reads ? toolCallFamily : undefined,
    reasoning: separates ? reasoning : undefined,
    tools,
    prompt,
  });
  return { ...request, prompt, reader };
}

/** Reads a request. A long prompt takes turns of the event loop. */
type ReadRequest = (request: ExecutableRequest, modelName: string) => TextRequest | Promise<TextRequest>;

/** Longest time in milliseconds without a turn of the event loop. */
const MAX_MS = 5;

/** Runs a callback that generates text, for several requests at a time, on this thread. */
export class GeneratorExecutor implements Executor {
  readonly isolation = "inline";
  readonly mustFinish = false;
  readonly details: Readonly<Record<string, string>> = {};
  readonly #asyncContext = new AsyncResource("TritonInstance");

  /**
   * @param generate generates a text
   * @param read reads a request
   * @param capacity number of requests at a time
   */
  constructor(
    private readonly generate: (
      request: TextRequest,
      context: TextGenerationContext,
    ) => ReturnType<TextCallback>,
    private readonly read: ReadRequest,
    private readonly context: ExecutorContext,
    readonly capacity: number,
  ) {}

  async start(): Promise<void> {}

  async stop(): Promise<void> {
    this.#asyncContext.emitDestroy();
  }

  async execute(execution: Execution): Promise<undefined> {
    // Leaves the async context of the request whose end started this execution.
    await this.#asyncContext.runInAsyncScope(() =>
      Promise.all(
        execution.requests.map(async (request, index) => {
          try {
            await this.#answer(execution, request, index);
          } catch (thrown) {
            execution.sendError(index, TritonError.from(thrown), true);
          }
        }),
      ),
    );
    return undefined;
  }

  async #answer(execution: Execution, request: ExecutableRequest, index: number): Promise<void> {
    const { modelName } = this.context.info;
    const given = this.read(request, modelName);
    const read = given instanceof Promise ? await given : given;
    if (read.sampling.promptLogprobs !== undefined) {
      throw invalidParameter("prompt_logprobs", "no value", read.sampling.promptLogprobs);
    }
    const answer = new TextAnswer(read, modelName);
    const { instanceName, instanceIndex, modelVersion, modelConfig, device } = this.context.info;
    const context: TextGenerationContext = {
      modelName,
      modelVersion,
      modelConfig,
      instanceName,
      instanceIndex,
      device,
      request,
      requests: [request],
      signal: request.signal,
      infer: (...call) => execution.models.infer(...call),
      stream: (...call) => execution.models.stream(...call),
    };
    execution.inputsReady();
    const inInstance = execution.within ?? ((fn) => fn());
    const within = <T>(fn: () => T): T => request.runInContext(() => inInstance(fn));
    const pieces = iteratorOf(await within(async () => this.generate(read, context)));
    let ended: Promise<unknown> | undefined;
    /** Asks the callback to clean up: `return()` of a generator. Resolves when it has, at once if it has ended. */
    const end = () => {
      ended ??= within(async () => pieces.return?.());
      return ended;
    };
    // An error in the clean-up of a request that is over is dropped, because no client waits for it.
    const cancel = () => void end().catch(() => {});
    const next = async () => {
      try {
        return await within(() => pieces.next());
      } catch (thrown) {
        ended ??= Promise.resolve();
        throw thrown;
      }
    };
    const stopListening = onAbort(request.signal, cancel);
    try {
      await this.#send(execution, index, next, answer);
      await end();
    } catch (thrown) {
      cancel();
      throw thrown;
    } finally {
      stopListening();
    }
  }

  /** Sends responses for as long as the callback yields pieces and the request wants them. */
  async #send(
    execution: Execution,
    index: number,
    next: () => Promise<IteratorResult<unknown>>,
    answer: TextAnswer,
  ): Promise<void> {
    const { clock } = execution;
    let turn = clock.now();
    let complete = false;
    while (!complete && execution.isOpen(index)) {
      const { done, value } = await next();
      if (done) break;
      complete = answer.take(readPiece(value, this.context.info.modelName));
      const outputs = complete ? undefined : answer.next();
      if (outputs !== undefined) execution.send(index, outputs);
      await execution.writable(index);
      if (clock.now() - turn <= MAX_MS) continue;
      // A generator that never waits would otherwise starve timers and sockets.
      await setImmediate();
      turn = clock.now();
    }
    execution.outputsReady();
    if (!execution.isOpen(index)) return;
    const outputs = answer.last();
    if (outputs === undefined) execution.finish(index);
    else execution.send(index, outputs, true);
  }
}

function iteratorOf(value: unknown): AsyncIterator<unknown> | Iterator<unknown> {
  if (typeof value === "object" && value !== null) {
    const iterable = value as Partial<AsyncIterable<unknown> & Iterable<unknown>>;
    const iterator = iterable[Symbol.asyncIterator]?.() ?? iterable[Symbol.iterator]?.();
    if (iterator !== undefined) return iterator;
  }
  return [value][Symbol.iterator]();
}

/** Inputs of a model made by {@link textEmbedder}. */
export const EMBEDDING_INPUTS = [
  { name: "text_input", dtype: "BYTES", shape: [1] },
] as const satisfies readonly TensorSpec[];

/** Outputs of a model made by {@link textEmbedder}. */
export const EMBEDDING_OUTPUTS = [
  { name: "embedding", dtype: "FP32", shape: [-1] },
] as const satisfies readonly TensorSpec[];

/** An embedding: one number for each dimension. */
type EmbeddingVector = Float32Array | readonly number[];

/** A function that makes embeddings, as {@link textEmbedder} takes it: one vector for each text, in the same order. */
export type EmbeddingCallback = (
  texts: readonly string[],
  context: InferContext,
) => readonly EmbeddingVector[] | Promise<readonly EmbeddingVector[]>;

/**
 * Makes a model of a function that turns texts into embeddings. The texts of a batch come from many requests. The model
 * has the input `text_input` and the output `embedding`, so `/v1/embeddings` of the OpenAI frontend calls it too.
 *
 * @throws TritonError INVALID_ARG unless `callback` is a function. A callback that returns another number of vectors
 * than texts, or vectors of different lengths, fails its batch with INTERNAL (reason INVALID_OUTPUT).
 * @example
 * ```ts
 * const embed = triton.bind({
 *   modelName: "embed",
 *   inferFunc: textEmbedder(async (texts) => encoder.run(texts)),
 *   config: { maxBatchSize: 32 },
 * });
 * const { embedding } = await embed.inferSample({ text_input: ["hello"] }); // embedding: ndarray of shape [384]
 * ```
 */
export function textEmbedder(
  callback: EmbeddingCallback,
): TypedBackend<typeof EMBEDDING_INPUTS, typeof EMBEDDING_OUTPUTS> {
  if (typeof callback !== "function") {
    const text = `textEmbedder(): callback: expected a function, got ${typeof callback}`;
    throw errorFor("INVALID_OPTION", text);
  }
  const inferFunc = embeddingBatch(callback);
  return {
    backendName: "javascript",
    platform: "",
    describe: () => ({ inputs: withRows(EMBEDDING_INPUTS), outputs: withRows(EMBEDDING_OUTPUTS) }),
    createExecutor: (context) => callbackExecutor(inferFunc, context),
  };
}

/** The function of a batch, for a function of its texts. */
export function embeddingBatch(callback: EmbeddingCallback) {
  return batch<typeof EMBEDDING_INPUTS, typeof EMBEDDING_OUTPUTS>(async ({ text_input }, context) => {
    const texts = text_input.strings();
    const vectors = await callback(texts, context);
    return { embedding: rowsOf(vectors, texts.length, context.modelName) };
  });
}

/** The tensors with their batch axis. */
export function withRows(specs: readonly TensorSpec[]): TensorSpec[] {
  return specs.map((spec) => ({ ...spec, shape: [-1, ...spec.shape] }));
}

function rowsOf(vectors: readonly EmbeddingVector[], count: number, modelName: string): Float32Array {
  const length = Array.isArray(vectors) ? (vectors[0]?.length ?? 0) : 0;
  if (length === 0 || vectors.length !== count || vectors.some((one) => one?.length !== length)) {
    throw wrongVectors(vectors, count, modelName);
  }
  const rows = new Float32Array(count * length);
  for (let i = 0; i < count; i++) rows.set(vectors[i]!, i * length);
  return rows;
}

function wrongVectors(vectors: unknown, count: number, modelName: string): TritonError {
  const got = Array.isArray(vectors)
    ? `${vectors.length} with the lengths [${[...new Set(vectors.map((one) => one?.length))].join(", ")}]`
    : `a ${typeof vectors}`;
  const text = `model '${modelName}': textEmbedder: expected ${count} vectors of one length above 0, got ${got}`;
  return errorFor("INVALID_OUTPUT", text);
}
