import { setImmediate } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { importPeer, notLoaded } from "@tritonjs/core/internal/worker";
import { errorFor, TritonError } from "@tritonjs/protocol";
import { ChatTemplate, withTexts } from "../chat/chat-template.js";
import type { ResponseFormat } from "../sampling/sampling-parameters.js";
import { StructuredOutput, type TokenConstraint } from "../structured/structured-output.js";
import type { TextRequest } from "../text-request.js";
import type {
  Llama,
  LlamaContext,
  LlamaGpu,
  LlamaModel,
  LlamaModule,
  LlamaSequence,
  LlamaToken,
} from "./llama-module.js";
import type { LlamaCppOptions } from "./llama-options.js";
import { LlamaPrefixes } from "./llama-prefixes.js";
import { LlamaVocabulary } from "./llama-vocabulary.js";

/** Texts at a time unless an option says otherwise. */
export const DEFAULT_SEQUENCES = 8;

/** Tokens of a text and its prompt unless an option says otherwise, where the model has more. Each takes memory. */
const DEFAULT_CONTEXT_LENGTH = 4096;

/** llama.cpp on one kind of GPU, or the CPU, for all models of the process. */
interface Library {
  readonly llama: Promise<Llama>;
  /** Receives what llama.cpp reports: why a model does not load, or a warning. */
  report: (message: string) => void;
  /** Resolves when the last model has loaded. llama.cpp has one log, so models load one after the other. */
  loaded: Promise<unknown>;
}

/**
 * Opening one takes a second. They stay open until the process ends: llama.cpp never closes after a file that does not
 * load.
 */
const libraries = new WeakMap<LlamaModule, Map<LlamaGpu, Library>>();

/** A model file of llama.cpp that is open. */
export class LlamaFile {
  private constructor(
    readonly model: LlamaModel,
    /** Where the model runs: `cpu`, or the kind of GPU. */
    readonly provider: string,
    /** Version of llama.cpp. */
    readonly release: string | undefined,
  ) {}

  /**
   * Opens a file.
   *
   * @param onGpu true for an instance on a GPU
   * @param warn receives the warnings of llama.cpp
   * @throws TritonError UNAVAILABLE without `node-llama-cpp`; INVALID_ARG, with the words of llama.cpp, for a file that
   * it cannot load
   */
  static async open(
    { model: path, gpu = "auto", gpuLayers }: LlamaCppOptions & { readonly model: string },
    onGpu: boolean,
    warn: (message: string) => void,
  ): Promise<LlamaFile> {
    const module = await importPeer<LlamaModule>("node-llama-cpp", import.meta.url).catch(
      (error: unknown) => {
        throw notLoaded("llama.cpp", error, "npm install node-llama-cpp");
      },
    );
    const library = libraryOf(module, gpu === "auto" && !onGpu ? false : gpu);
    const loading = library.loaded.then(async () => {
      const llama = await library.llama;
      const faults: string[] = [];
      library.report = (message) => void faults.push(message);
      try {
        const model = await llama.loadModel({
          modelPath: path,
          ...(gpuLayers !== undefined && { gpuLayers }),
        });
        return new LlamaFile(model, llama.gpu || "cpu", llama.llamaCppRelease?.release);
      } catch (error) {
        // llama.cpp reports the reason on a thread of its own.
        await setImmediate();
        const found = faults.map((text) => /error loading model: (.*)/.exec(text)?.[1]).find(Boolean);
        const why = found ?? TritonError.from(error).message;
        throw errorFor("INVALID_MODEL", `cannot load the model ${path} with llama.cpp: ${why}`, {
          cause: error,
        });
      } finally {
        library.report = (message) => warn(`llama.cpp: ${message.trim()}`);
      }
    });
    library.loaded = loading.catch(() => {});
    return loading;
  }

  close(): Promise<void> {
    return this.model.dispose();
  }
}

function libraryOf(module: LlamaModule, gpu: LlamaGpu): Library {
  const opened = libraries.get(module) ?? new Map<LlamaGpu, Library>();
  libraries.set(module, opened);
  const found = opened.get(gpu);
  if (found !== undefined) return found;
  const llama = module.getLlama({
    gpu,
    build: "never",
    skipDownload: true,
    logLevel: "error",
    logger: (_, message) => library.report(message),
    // Each context has the threads of its option, and none is shared out.
    maxThreads: 0,
  });
  const library: Library = {
    llama: llama.catch((error: unknown) => {
      opened.delete(gpu);
      throw notLoaded("llama.cpp", error, "install the package @node-llama-cpp/<platform> of this machine");
    }),
    report: () => {},
    loaded: Promise.resolve(),
  };
  opened.set(gpu, library);
  return library;
}

/** A prompt in tokens, and how many tokens its text may have. */
interface LlamaPrompt {
  readonly tokens: readonly LlamaToken[];
  readonly maxTokens: number;
}

/** An open model with the slots in which its texts are generated. */
export class LlamaEngine {
  readonly vocabulary: LlamaVocabulary;
  /** Template of chats; undefined if the file has none, or one that cannot be read. */
  readonly template: ChatTemplate | undefined;
  readonly #free: LlamaSequence[];
  readonly #all: readonly LlamaSequence[];
  #structured: StructuredOutput | undefined;
  /** Free slots whose states may not be in a file, with the tokens of their prompts. */
  readonly #unsaved = new Map<LlamaSequence, number>();
  #saving: Promise<void> | undefined;

  private constructor(
    readonly file: LlamaFile,
    private readonly parts: {
      readonly modelName: string;
      readonly context: LlamaContext;
      readonly sequences: number;
      readonly unheldKeywords: "refuse" | "warn";
      readonly warn: (message: string) => void;
      readonly prefixes: LlamaPrefixes | undefined;
    },
  ) {
    const { context, sequences } = parts;
    this.vocabulary = new LlamaVocabulary(file.model);
    this.template = this.#readTemplate();
    this.#all = Array.from({ length: sequences }, () => context.getSequence());
    this.#free = [...this.#all];
  }

  /** @throws TritonError like {@link LlamaFile.open}; INVALID_ARG if there is not enough memory for the context */
  static async open(
    options: LlamaCppOptions & { readonly model: string },
    modelName: string,
    onGpu: boolean,
    warn: (message: string) => void,
  ): Promise<LlamaEngine> {
    const {
      sequences = DEFAULT_SEQUENCES,
      threads = 1,
      contextLength,
      batchSize,
      unheldKeywords = "refuse",
    } = options;
    const file = await LlamaFile.open(options, onGpu, warn);
    try {
      const contextSize = contextLength ?? Math.min(DEFAULT_CONTEXT_LENGTH, file.model.trainContextSize);
      const sizes = { sequences, contextSize, threads };
      const context = await file.model.createContext({
        ...sizes,
        ...(batchSize !== undefined && { batchSize }),
      });
      const prefixes = await openPrefixes(options, file, warn);
      return new LlamaEngine(file, { modelName, context, sequences, unheldKeywords, warn, prefixes });
    } catch (error) {
      await file.close();
      if (error instanceof TritonError) throw error;
      const why = TritonError.from(error).message;
      const text = `cannot open a context of ${sequences} texts for the model ${options.model} with llama.cpp: ${why}`;
      throw errorFor("INVALID_MODEL", text, { cause: error });
    }
  }

  #readTemplate(): ChatTemplate | undefined {
    const { fileInfo, tokens } = this.file.model;
    const text = fileInfo.metadata.tokenizer?.chat_template;
    if (text === undefined) return undefined;
    try {
      const names = { bosToken: tokens.bosString ?? "", eosToken: tokens.eosString ?? "" };
      return ChatTemplate.from(text, { ...names, modelName: this.parts.modelName });
    } catch (error) {
      this.parts.warn(`model '${this.parts.modelName}' takes no chats: ${TritonError.from(error).message}`);
      return undefined;
    }
  }

  /** Tokens that a prompt and its text may have together. */
  get contextLength(): number {
    return this.parts.context.contextSize;
  }

  /** Tokens in all slots, those of past texts included, which later prompts may begin with. */
  get usedTokens(): number {
    return this.#all.reduce((sum, { nextTokenIndex }) => sum + nextTokenIndex, 0);
  }

  get totalTokens(): number {
    return this.#all.length * this.contextLength;
  }

  get running(): number {
    return this.#all.length - this.#free.length;
  }

  /** Takes the free slot that has the longest beginning of a prompt, also from files. */
  async takeSequence(prompt: readonly LlamaToken[]): Promise<LlamaSequence> {
    const sequence = this.#takeFree(prompt);
    this.#unsaved.delete(sequence);
    if (this.parts.prefixes === undefined) return sequence;
    try {
      const known = commonBeginning(sequence.contextTokens, prompt);
      await this.parts.prefixes.load(sequence, prompt, known);
      return sequence;
    } catch (error) {
      this.returnSequence(sequence);
      throw error;
    }
  }

  #takeFree(prompt: readonly LlamaToken[]): LlamaSequence {
    let best = 0;
    let longest = -1;
    for (const [i, sequence] of this.#free.entries()) {
      const length = commonBeginning(sequence.contextTokens, prompt);
      // Of slots that have nothing of it, the one that has waited longest is taken, so that others keep their texts.
      if (length > longest) [best, longest] = [i, length];
    }
    return this.#free.splice(best, 1)[0]!;
  }

  /** @param promptLength tokens of the prompt that it has computed */
  returnSequence(sequence: LlamaSequence, promptLength = 0): void {
    this.#free.push(sequence);
    if (this.parts.prefixes === undefined) return;
    this.#unsaved.set(sequence, promptLength);
    this.#saving ??= this.#save();
  }

  /** Saves what the slots have, until a text begins. */
  async #save(): Promise<void> {
    for (let next = this.#nextUnsaved(); next !== undefined; next = this.#nextUnsaved()) {
      const [sequence, promptLength] = next;
      this.#unsaved.delete(sequence);
      await this.parts.prefixes?.save(sequence, promptLength);
    }
    this.#saving = undefined;
  }

  #nextUnsaved(): [LlamaSequence, number] | undefined {
    return this.running > 0 ? undefined : this.#unsaved.entries().next().value;
  }

  /**
   * Encodes the prompt of a request.
   *
   * @throws TritonError INVALID_ARG if the prompt or its text is too long
   */
  encode(request: TextRequest): LlamaPrompt {
    const { modelName } = this.parts;
    const tokens = request.promptTokens ?? this.#tokenizeWithin(request);
    this.vocabulary.checkTokens(tokens, modelName);
    if (tokens.length === 0) {
      throw errorFor("INVALID_INPUT", `prompt of model '${modelName}': expected at least 1 token, got none`);
    }
    return { tokens, maxTokens: this.#textLength(request, tokens.length, "") };
  }

  /**
   * Tokens that the text of a request may have.
   *
   * @throws TritonError INVALID_ARG if they do not fit beside a prompt
   */
  #textLength({ sampling }: TextRequest, length: number, atLeast: string): number {
    const { modelName } = this.parts;
    const { contextLength } = this;
    if (length >= contextLength) {
      const text = `prompt of model '${modelName}': expected at most ${contextLength - 1} tokens, because the context has ${contextLength} tokens, got ${atLeast}${length}`;
      throw errorFor("CONTEXT_LENGTH_EXCEEDED", text);
    }
    const left = contextLength - length;
    const { maxTokens = left } = sampling;
    if (maxTokens <= left) return maxTokens;
    const text =
      `max_tokens of a request to model '${modelName}': expected at most ${left}, because the context has ` +
      `${contextLength} tokens and the prompt has ${atLeast}${length}, got ${maxTokens}`;
    throw errorFor("CONTEXT_LENGTH_EXCEEDED", text);
  }

  /** Tokenizes a prompt that may fit: llama.cpp holds the thread meanwhile, for seconds with some megabytes. */
  #tokenizeWithin(request: TextRequest): LlamaToken[] {
    const { prompt = "" } = request;
    // The tokens of a short one are counted.
    if (prompt.length > this.contextLength) {
      this.#textLength(request, this.vocabulary.fewestTokens(prompt), "at least ");
    }
    return this.#tokenize(request);
  }

  #tokenize({ prompt = "", messages }: TextRequest): LlamaToken[] {
    const { model } = this.file;
    const tokens = model.tokenize(prompt, true);
    const { bos, shouldPrependBosToken } = model.tokens;
    // A chat template writes the special tokens at the beginning itself.
    const addsBos = messages === undefined && shouldPrependBosToken && bos !== null && tokens[0] !== bos;
    return addsBos ? [bos, ...tokens] : tokens;
  }

  /**
   * Makes the prompt of a chat with the template of the file.
   *
   * @throws TritonError UNSUPPORTED without a template; INVALID_ARG if it rejects the messages
   */
  async render(
    request: TextRequest,
    signal: AbortSignal,
  ): Promise<{ readonly template: ChatTemplate; readonly prompt: string }> {
    const { template } = this;
    if (template === undefined) {
      const text = `messages to model '${this.parts.modelName}': expected a chat template in the GGUF file, got none; send 'text_input'`;
      throw errorFor("MODEL_NOT_SUPPORTED", text);
    }
    const { messages = [], tools, templateVariables: variables, addGenerationPrompt } = request;
    const chat = { messages: withTexts(messages), tools, variables, addGenerationPrompt };
    return { template, prompt: await template.renderInTurns(chat, signal) };
  }

  /** The error for tools of a request, if the template does not show how the model writes their calls. */
  showsNoCalls(): TritonError {
    const text = `tools of a request to model '${this.parts.modelName}': expected a chat template in the GGUF file that shows how the model writes calls, got one without; leave 'tools' out, or set 'tool_choice' to required`;
    return errorFor("MODEL_NOT_SUPPORTED", text);
  }

  /**
   * Limits a text to a format.
   *
   * @throws TritonError INVALID_ARG for a format that cannot be held, or a vocabulary whose tokens have no bytes;
   * CANCELLED when the signal aborts
   */
  structured(format: ResponseFormat, signal: AbortSignal): Promise<TokenConstraint | undefined> {
    const { vocabulary } = this;
    const { unheldKeywords, warn } = this.parts;
    this.#structured ??= new StructuredOutput(
      vocabulary.forConstraints(),
      vocabulary.endTokens,
      unheldKeywords === "warn" ? warn : undefined,
    );
    return this.#structured.constrain(format, signal);
  }

  async close(): Promise<void> {
    await this.#saving;
    await this.#structured?.close();
    await this.file.close();
  }
}

async function openPrefixes(
  {
    prefixDirectory: path,
    prefixDirectoryBytes,
    model,
    contextLength,
  }: LlamaCppOptions & { readonly model: string },
  file: LlamaFile,
  warn: (message: string) => void,
): Promise<LlamaPrefixes | undefined> {
  if (path === undefined) return undefined;
  const directory = path instanceof URL ? fileURLToPath(path) : path;
  const form = [file.release, file.provider, contextLength];
  return LlamaPrefixes.open(directory, prefixDirectoryBytes, model, form, warn);
}

function commonBeginning(a: readonly LlamaToken[], b: readonly LlamaToken[]): number {
  let length = 0;
  while (length < a.length && length < b.length && a[length] === b[length]) length++;
  return length;
}
