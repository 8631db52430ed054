import type { ModelConfig, TensorSpec } from "@tritonjs/protocol";
import type { EnsembleOptions, EnsembleStep } from "../../src/config/ensemble.js";
import { resolveEnsemble } from "../../src/config/ensemble.js";

const tensor = (name: string): TensorSpec => ({ name, dtype: "FP32", shape: [1] });

/** An ensemble step that maps the model's tensors `x` and `y` to two tensors of the ensemble. */
export const step = (modelName: string, from: string, to: string): EnsembleStep => ({
  modelName,
  inputMap: { x: from },
  outputMap: { y: to },
});

/** The configuration of an ensemble `e` of FP32 tensors. */
export function ensembleConfig(
  inputs: readonly string[],
  outputs: readonly string[],
  steps: readonly EnsembleStep[],
  options: EnsembleOptions = {},
  overrides: Partial<ModelConfig> = {},
): ModelConfig {
  return resolveEnsemble({
    modelName: "e",
    inputs: inputs.map(tensor),
    outputs: outputs.map(tensor),
    steps,
    options,
    overrides,
  });
}
