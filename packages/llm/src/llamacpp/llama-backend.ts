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
  type ModelFiles,
} from "@tritonjs/core/backend";
import { DeclaredParameters, wrongParameter } from "@tritonjs/core/internal";
import { errorFor } from "@tritonjs/protocol";
import { EMBEDDING_INPUTS, EMBEDDING_OUTPUTS, embeddingBatch, withRows } from "../text-generator.js";
import { TEXT_OUTPUTS, TOKEN_INPUTS } from "../text-request.js";
import { LlamaFile } from "./llama-engine.js";
import { LlamaExecutor } from "./llama-executor.js";
import { checkLlamaOptions, LLAMA_CHOICES, LLAMA_NUMBERS, type LlamaCppOptions } from "./llama-options.js";

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
