import { type ModelConfig, TritonError } from "@tritonjs/protocol";
import { type Gpus, MachineGpus } from "../placement/gpus.js";
import { instanceGroupProblems } from "../placement/instance-groups.js";
import { fieldProblems } from "../schema/field-support.js";

import { batchInputTypeProblems } from "../validation/validate-batch-io.js";
import { validateModelConfig } from "../validation/validate-model-config.js";
import { validateModelIo } from "../validation/validate-model-io.js";
import { validateSequenceStates } from "../validation/validate-sequence-states.js";
import { AutoCompleteConfig } from "./auto-complete-config.js";
import { completeInstanceGroups } from "./instance-groups.js";
import { checkOnnxTensors, completeFromFile, type FileDescription } from "./onnx.js";
import { withDefaults } from "./prepare-config.js";

/** Settings of the server that affect completion. */
export interface CompleteOptions {
  /** Whether the model may complete its configuration. */
  readonly autoComplete: boolean;
  /** Largest batch of a model that can batch but gives no size. @default 4, as Triton's */
  readonly defaultMaxBatchSize?: number;
  /** Whether a configuration was written at all. @default true */
  readonly isWritten?: boolean;
  /** GPUs that instance groups may name. @default the GPUs of the machine */
  readonly gpus?: Gpus;
  /** Called with a text for each filled-in value that may be unexpected. */
  readonly warn?: (text: string) => void;
}

/**
 * Completes a prepared configuration from the model itself, and checks the result, as Triton does when it creates the
 * model.
 *
 * @param model description from the model file, or the result of `autoCompleteConfig` of a JavaScript model for the
 * prepared configuration; undefined for a model that does not describe itself
 * @throws TritonError with one line for each problem, in Triton's order: the first line is the one that Triton reports
 */
export function completeConfig(
  prepared: ModelConfig,
  model: FileDescription | AutoCompleteConfig | undefined,
  options: CompleteOptions,
): ModelConfig {
  const { name } = prepared;
  const isFile = model !== undefined && !(model instanceof AutoCompleteConfig);
  let config = prepared;
  if (options.autoComplete && model instanceof AutoCompleteConfig) config = model.config;
  else if (options.autoComplete && isFile) config = completeFromFile(prepared, model, options);
  if (options.isWritten === false && model === undefined) {
    throw new TritonError("NOT_FOUND", `model configuration is not provided for model '${name}'`, {
      reason: "MISSING_CONFIG",
    });
  }
  const gpus = options.gpus ?? new MachineGpus();
  config = completeInstanceGroups(withDefaults(config), gpus);
  const { sequenceBatching: sequences } = config;
  const problems = [
    ...batchInputTypeProblems(config),
    ...validateModelConfig(config),
    ...validateModelIo(config),
    ...(config.ensembleScheduling === undefined ? instanceGroupProblems(config, gpus) : []),
    ...fieldProblems(config),
    ...(sequences === undefined ? [] : validateSequenceStates(config, sequences)),
  ];
  if (problems.length === 0 && isFile) problems.push(...checkOnnxTensors(config, model));
  if (problems.length > 0)
    throw new TritonError("INVALID_ARG", problems.join("\n"), { reason: "INVALID_CONFIG" });
  return config;
}
