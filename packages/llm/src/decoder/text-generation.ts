import { isAbsolute } from "node:path";
import { fileURLToPath } from "node:url";
import {
  type Backend,
  type BackendFactory,
  type ChangeGauge,
  continuousWorker,
  type Executor,
  type ExecutorContext,
  findModelDirectory,
  gaugesOf,
  type ModelFiles,
} from "@tritonjs/core/backend";
import { DeclaredParameters, wrongParameter } from "@tritonjs/core/internal";
import { errorFor } from "@tritonjs/protocol";
import { DECODER_INPUTS, DECODER_OUTPUTS, IMAGE_INPUT } from "../text-request.js";
import {
  checkDecoderOptions,
  DECODER_DEFAULTS,
  type DecoderData,
  type TextGenerationOptions,
} from "./decoder-settings.js";
import { findGraph, findImageEncoder, type GraphChoice } from "./model-files.js";

/**
 * A backend that generates text with a decoder on ONNX Runtime, each instance in a worker thread. It loads the layout
 * that Hugging Face Optimum exports for `text-generation-with-past`, those of transformers.js and of
 * onnxruntime-genai: a graph, a tokenizer, `config.json` or `genai_config.json`, and if they are there
 * `tokenizer_config.json` and `generation_config.json`.
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
  const { directory: given, onWarning, prefixDirectory, ...others } = options;
  const directory = given instanceof URL ? fileURLToPath(given) : given;
  const rest = {
    ...others,
    prefixDirectory: prefixDirectory instanceof URL ? fileURLToPath(prefixDirectory) : prefixDirectory,
  };
  const warn = onWarning ?? ((message: string) => process.emitWarning(message, "TritonWarning"));
  return {
    backendName: "text_generation",
    platform: "",
    isolations: ["worker"],
    describe: () => {
      checkDecoderOptions(options);
      findGraph(directory, rest);
      return {
        inputs: inputsOf(directory, rest),
        outputs: DECODER_OUTPUTS,
        maxBatchSize: 0,
        decoupled: true,
        asInConfig: true,
      };
    },
    completeConfig: (config) => {
      findGraph(directory, rest);
      for (const { name, dtype: dataType, shape: dims, optional } of inputsOf(directory, rest)) {
        config.addInput({ name, dataType, dims, optional });
      }
      for (const { name, dtype: dataType, shape: dims } of DECODER_OUTPUTS)
        config.addOutput({ name, dataType, dims });
      config.setModelTransactionPolicy({ decoupled: true });
    },
    createExecutor: (context) => createDecoderExecutor({ ...rest, directory }, context, warn),
  };
}

/** A model that takes images has an input for them. */
function inputsOf(directory: string, choice: GraphChoice) {
  return findImageEncoder(directory, choice) === undefined
    ? DECODER_INPUTS
    : [...DECODER_INPUTS, IMAGE_INPUT];
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
  prefix_cache_bytes: "prefixCacheBytes",
  prefix_directory_bytes: "prefixDirectoryBytes",
  prefill_tokens: "prefillTokens",
  context_length: "contextLength",
  prompt_lookup_tokens: "promptLookupTokens",
  max_images: "maxImages",
  intra_op_thread_count: "intraOpNumThreads",
} as const;

const TEXT_PARAMETERS = {
  dtype: "dtype",
  file: "file",
  unheld_keywords: "unheldKeywords",
  prefix_directory: "prefixDirectory",
} as const;
const SWITCH_PARAMETERS = { prefix_cache: "prefixCache", batch_invariant: "batchInvariant" } as const;

const PARAMETERS = new DeclaredParameters<string>({
  read: ["file"],
  write: ["prefix_directory"],
  value: ["dtype", "unheld_keywords", ...Object.keys({ ...NUMBER_PARAMETERS, ...SWITCH_PARAMETERS })],
});

/**
 * The backend `text_generation` for models of a repository. A version's directory is a directory of
 * {@link textGeneration}. The parameters `dtype`, `file`, `unheld_keywords`, `max_running_requests`, `kv_cache_bytes`, `prefix_cache_bytes`, `prefix_directory`, `prefix_directory_bytes`, `prefill_tokens`, `context_length`, `prompt_lookup_tokens`, `max_images`,
 * `intra_op_thread_count`, `prefix_cache` and `batch_invariant` of the configuration are its options.
 */
export const textGenerationBackend: BackendFactory = PARAMETERS.declaredBy(async (source) => {
  const { name, config, warn } = source;
  if (config.maxBatchSize !== 0) {
    const text =
      `model '${name}': expected max_batch_size 0, because the backend text_generation forms its own batches, got ` +
      `${config.maxBatchSize}`;
    throw errorFor("INVALID_CONFIG", text);
  }
  const directory = await findModelDirectory(source);
  return textGeneration({ directory, onWarning: warn, ...repositoryOptions(source) });
});

function repositoryOptions(source: ModelFiles): Partial<TextGenerationOptions> {
  const options: Record<string, number | boolean | string> = {};
  for (const [parameter, option] of Object.entries(TEXT_PARAMETERS)) {
    const text = PARAMETERS.text(source, parameter);
    if (text === undefined) continue;
    if (parameter === "prefix_directory" && !isAbsolute(text))
      throw wrongParameter(source.name, parameter, "an absolute path", text);
    options[option] = text;
  }
  for (const [parameter, option] of Object.entries(NUMBER_PARAMETERS)) {
    const text = PARAMETERS.text(source, parameter);
    if (text === undefined) continue;
    const value = Number(text);
    const least = parameter === "prompt_lookup_tokens" ? 0 : 1;
    if (!Number.isSafeInteger(value) || value < least)
      throw wrongParameter(source.name, parameter, `an integer of at least ${least}`, text);
    options[option] = value;
  }
  for (const [parameter, option] of Object.entries(SWITCH_PARAMETERS)) {
    const text = PARAMETERS.text(source, parameter);
    if (text === undefined) continue;
    if (text !== "true" && text !== "false")
      throw wrongParameter(source.name, parameter, "'true' or 'false'", text);
    options[option] = text === "true";
  }
  return options;
}

/** How busy an engine is, as it reports to the main thread. */
export interface EngineLoad {
  /** Requests that the engine has taken since it was loaded. */
  readonly taken: number;
  /** Requests whose formats are being read. */
  readonly reading: number;
  readonly running: number;
  /** Texts in the engine that wait for space for keys and values. */
  readonly waiting: number;
  /** Length that one more text may have now; 0 if there is no room for it. */
  readonly room: number;
  /** Tokens of keys and values that are in use, and that fit. */
  readonly usedTokens: number;
  readonly totalTokens: number;
  /** Longest text, prompt included. */
  readonly contextLength: number;
  /** Runs of the graph since the engine was loaded. */
  readonly runs: number;
}

/** Largest number of requests whose formats are read while others run. */
const MAX_READING = 256;

/** Decides on the main thread whether the engine may get its next request, which else waits in the model's queue. */
export class Admission {
  #load: EngineLoad | undefined;
  #sent = 0;

  /** @param maxRunning largest number of texts at a time */
  constructor(private readonly maxRunning: number) {}

  sent(): void {
    this.#sent++;
  }

  /** Takes a report of the engine. A new engine starts to count again. */
  take(load: EngineLoad): void {
    if (load.taken === 0) this.#sent = 0;
    this.#load = load;
  }

  /**
   * Number of requests that the engine may have at a time. While the space for keys and values could run out, the
   * engine gets one request after the other: each report shows whether there is room for the next.
   */
  get capacity(): number {
    const load = this.#load;
    if (load === undefined) return this.maxRunning;
    // Those whose formats are read do not run yet, and keep nobody waiting.
    const most = this.maxRunning + Math.min(load.reading, MAX_READING);
    const unknown = this.#sent - load.taken;
    const certain = (load.running + load.waiting + unknown + 1) * load.contextLength <= load.totalTokens;
    if (certain) return most;
    return unknown === 0 && load.waiting === 0 && load.room > 0 ? most : 0;
  }
}

const labelNames = ["model", "version"];

/** Gauges of what an instance shows, in which the instances of a model add up. */
const GAUGES = {
  running: { name: "tritonjs_generation_running", help: "Texts that are being generated", labelNames },
  waiting: {
    name: "tritonjs_generation_waiting",
    help: "Requests for texts that wait, in the model's queue or for space for keys and values",
    labelNames,
  },
  usage: {
    name: "tritonjs_generation_kv_cache_usage",
    help: "Share of the space for keys and values that is in use, 0 to 1; the mean of the instances",
    labelNames,
  },
  runs: {
    name: "tritonjs_generation_runs",
    help: "Runs of the graph since the instances were loaded",
    labelNames,
  },
  capacity: {
    name: "tritonjs_generation_token_capacity",
    help: "Tokens whose keys and values fit at a time, in all instances",
    labelNames,
  },
};

type Shown = Record<keyof typeof GAUGES, number>;

const NOTHING: Shown = { running: 0, waiting: 0, usage: 0, runs: 0, capacity: 0 };

/** The load of one instance on the metrics page, where the instances of a model add up. */
export class LoadGauges {
  #shown = NOTHING;

  /** @param queuedRequests number of requests in the model's queue, which all instances share */
  constructor(
    private readonly change: ChangeGauge,
    private readonly labels: Readonly<Record<string, string>>,
    private readonly instanceCount: number,
    private readonly queuedRequests: () => number,
  ) {}

  show({
    running,
    waiting,
    usedTokens,
    totalTokens,
    runs,
  }: Omit<EngineLoad, "taken" | "reading" | "room" | "contextLength">): void {
    const { instanceCount } = this;
    this.#set({
      running,
      waiting: waiting + this.queuedRequests() / instanceCount,
      usage: usedTokens / totalTokens / instanceCount,
      runs,
      capacity: totalTokens,
    });
  }

  /** Removes the values of an instance that has ended. */
  clear(): void {
    this.#set(NOTHING);
  }

  #set(next: Shown): void {
    const before = this.#shown;
    this.#shown = next;
    for (const name of Object.keys(GAUGES) as (keyof Shown)[]) {
      this.change(GAUGES[name], this.labels, next[name] - before[name]);
    }
  }
}
