import { stat } from "node:fs/promises";
import { join } from "node:path";
import type { BackendFactory, ModelSource } from "@tritonjs/core/backend";
import { TritonError } from "@tritonjs/protocol";
import { textGeneration } from "./text-generation.js";

/** Parameters of a configuration, or settings of the backend with hyphens, and the options that they are. */
const NUMBERS = {
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
    throw new TritonError(
      "INVALID_ARG",
      `model '${name}': expected max_batch_size 0, because the backend text_generation forms its own batches, got ` +
        `${config.maxBatchSize}`,
      { reason: "INVALID_CONFIG" },
    );
  }
  const found = await stat(join(versionDirectory)).catch(() => undefined);
  if (!found?.isDirectory()) {
    throw new TritonError(
      "UNAVAILABLE",
      `unable to find '${versionDirectory}' for model instance '${name}'`,
      {
        reason: "MODEL_FILE_MISSING",
      },
    );
  }
  return textGeneration({ directory: versionDirectory, onWarning: warn, ...optionsOf(source) });
};

function optionsOf(source: ModelSource): Record<string, number | boolean> {
  const options: Record<string, number | boolean> = {};
  for (const [parameter, option] of Object.entries(NUMBERS)) {
    const text = textOf(source, parameter);
    if (text === undefined) continue;
    const value = Number(text);
    if (!Number.isSafeInteger(value) || value < 1)
      throw wrong(source, parameter, "an integer of at least 1", text);
    options[option] = value;
  }
  const cache = textOf(source, "prefix_cache");
  if (cache === undefined) return options;
  if (cache !== "true" && cache !== "false") throw wrong(source, "prefix_cache", "'true' or 'false'", cache);
  return { ...options, prefixCache: cache === "true" };
}

function textOf({ config, settings }: ModelSource, parameter: string): string | undefined {
  return config.parameters[parameter]?.stringValue ?? settings[parameter.replaceAll("_", "-")];
}

function wrong({ name }: ModelSource, parameter: string, expected: string, got: string): TritonError {
  return new TritonError(
    "INVALID_ARG",
    `parameter '${parameter}' of model '${name}': expected ${expected}, got '${got}'`,
    { reason: "INVALID_CONFIG" },
  );
}
