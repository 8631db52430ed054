import { stat } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import {
  type Backend,
  type BackendFactory,
  continuousWorker,
  type Executor,
  type ExecutorContext,
  gaugesOf,
  type ModelSource,
} from "@tritonjs/core/backend";
import { parameterText, wrongParameter } from "@tritonjs/core/internal";
import { errorOf } from "@tritonjs/protocol";
import { TEXT_INPUTS, TEXT_OUTPUTS } from "../text-request.js";
import {
  checkDecoderOptions,
  DECODER_DEFAULTS,
  findGraph,
  type TextGenerationOptions,
} from "./decoder-settings.js";
import { Admission, type EngineLoad, LoadGauges } from "./engine-load.js";
import type { DecoderData } from "./open-decoder.js";

/** Outputs without `tool_calls`: calls of tools are part of the text. */
const OUTPUTS = TEXT_OUTPUTS.filter(({ name }) => name !== "tool_calls");

/**
 * A backend that generates text with a decoder on ONNX Runtime, each instance in a worker thread. It loads the layout
 * that Hugging Face Optimum exports for `text-generation-with-past`: `model.onnx` (or `onnx/model.onnx`),
 * `tokenizer.json`, `config.json`, and if they are there `tokenizer_config.json` and `generation_config.json`.
 *
 * Requests run together, step by step: they join and leave between two steps. The model is decoupled and has no batch
 * axis; its tensors are `TEXT_INPUTS` and `TEXT_OUTPUTS`.
 *
 * @throws TritonError at `bind`: NOT_FOUND for missing files, INVALID_ARG for invalid options. When an instance loads:
 * INVALID_ARG for files that cannot be read or do not fit together, UNAVAILABLE without `onnxruntime-node`.
 * @example
 * ```ts
 * const stories = triton.bind({
 *   modelName: "stories",
 *   inferFunc: textGeneration({ directory: "models/stories/1" }),
 * });
 * for await (const { text_output } of stories.stream({ text_input: ["Once"], stream: [true] })) {
 *   process.stdout.write(text_output!.get(0) as Uint8Array);
 * }
 * ```
 */
export function textGeneration(options: TextGenerationOptions): Backend {
  const { directory: given, onWarning, ...rest } = options;
  const directory = given instanceof URL ? fileURLToPath(given) : given;
  const warn = onWarning ?? ((message: string) => process.emitWarning(message, "TritonWarning"));
  return {
    backendName: "text_generation",
    platform: "",
    isolations: ["worker"],
    describe: () => {
      checkDecoderOptions(options);
      findGraph(directory);
      return {
        inputs: TEXT_INPUTS,
        outputs: OUTPUTS,
        maxBatchSize: 0,
        decoupled: true,
        asInConfig: true,
      };
    },
    completeConfig: (config) => {
      findGraph(directory);
      for (const { name, dtype: dataType, shape: dims, optional } of TEXT_INPUTS) {
        config.addInput({ name, dataType, dims, optional });
      }
      for (const { name, dtype: dataType, shape: dims } of OUTPUTS)
        config.addOutput({ name, dataType, dims });
      config.setModelTransactionPolicy({ decoupled: true });
    },
    createExecutor: (context) => createDecoderExecutor({ ...rest, directory }, context, warn),
  };
}

function createDecoderExecutor(
  data: DecoderData,
  context: ExecutorContext,
  warn: (message: string) => void,
): Executor {
  const { info, instanceCount, queuedRequests } = context;
  const admission = new Admission(data.maxRunningRequests ?? DECODER_DEFAULTS.maxRunningRequests);
  const labels = { model: info.modelName, version: String(info.modelVersion) };
  const gauges = new LoadGauges(gaugesOf(context), labels, instanceCount, queuedRequests);
  const executor = continuousWorker(context, {
    entry: new URL("./decoder-worker.js", import.meta.url),
    data,
    warn,
    capacity: () => admission.capacity,
    onExecute: () => admission.sent(),
    onReport: (value) => {
      const load = value as EngineLoad;
      admission.take(load);
      gauges.show(load);
      executor.onRoom?.();
    },
    onStop: () => gauges.clear(),
  });
  return executor;
}

/** Parameters of a configuration, or settings of the backend with hyphens, and the options that they are. */
const NUMBER_PARAMETERS = {
  max_running_requests: "maxRunningRequests",
  kv_cache_bytes: "kvCacheBytes",
  prefill_tokens: "prefillTokens",
  context_length: "contextLength",
  intra_op_thread_count: "intraOpNumThreads",
} as const;

/**
 * The backend `text_generation` for models of a repository. A version's directory is a directory of
 * {@link textGeneration}. The parameters `max_running_requests`, `kv_cache_bytes`, `prefill_tokens`, `context_length`,
 * `intra_op_thread_count` and `prefix_cache` of the configuration are its options.
 */
export const textGenerationBackend: BackendFactory = async (source) => {
  const { name, config, versionDirectory, warn } = source;
  if (config.maxBatchSize !== 0) {
    throw errorOf(
      "INVALID_CONFIG",
      `model '${name}': expected max_batch_size 0, because the backend text_generation forms its own batches, got ` +
        `${config.maxBatchSize}`,
    );
  }
  const found = await stat(join(versionDirectory)).catch(() => undefined);
  if (!found?.isDirectory()) {
    throw errorOf("MODEL_FILE_MISSING", `unable to find '${versionDirectory}' for model instance '${name}'`);
  }
  return textGeneration({ directory: versionDirectory, onWarning: warn, ...repositoryOptions(source) });
};

function repositoryOptions(source: ModelSource): Record<string, number | boolean> {
  const options: Record<string, number | boolean> = {};
  for (const [parameter, option] of Object.entries(NUMBER_PARAMETERS)) {
    const text = parameterText(source, parameter);
    if (text === undefined) continue;
    const value = Number(text);
    if (!Number.isSafeInteger(value) || value < 1)
      throw wrongParameter(source.name, parameter, "an integer of at least 1", text);
    options[option] = value;
  }
  const cache = parameterText(source, "prefix_cache");
  if (cache === undefined) return options;
  if (cache !== "true" && cache !== "false")
    throw wrongParameter(source.name, "prefix_cache", "'true' or 'false'", cache);
  return { ...options, prefixCache: cache === "true" };
}
