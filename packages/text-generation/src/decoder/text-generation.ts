import { fileURLToPath } from "node:url";
import type { Executor } from "@tritonjs/core/backend";
import { type Backend, continuousWorker, type ExecutorContext, gaugesOf } from "@tritonjs/core/backend";
import { TEXT_INPUTS, TEXT_OUTPUTS } from "../tensors/text-model-tensors.js";
import { Admission } from "./admission.js";
import { checkDecoderOptions } from "./check-decoder-options.js";
import { DECODER_DEFAULTS, type TextGenerationOptions } from "./decoder-options.js";
import type { EngineLoad } from "./engine-load.js";
import { LoadGauges } from "./load-gauges.js";
import { findGraph } from "./model-directory.js";
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
