import type { AutoCompleteConfig } from "@tritonjs/core/config";
import type { TensorSpec } from "@tritonjs/protocol";

/** Largest batch of a model of a repository whose configuration does not set it. */
const MAX_BATCH_SIZE = 32;

/**
 * Completes a configuration of a repository. A model without written tensors batches, with the written size or 32. If
 * tensors are written and `max_batch_size` is 0, requests have no batch axis.
 *
 * @param inputs tensors without the batch axis
 * @param outputs tensors without the batch axis
 * @throws TritonError INTERNAL if a written field contradicts the options
 */
export function completeTensors(
  config: AutoCompleteConfig,
  inputs: readonly TensorSpec[],
  outputs: readonly TensorSpec[],
): void {
  const { input, output, maxBatchSize, sequenceBatching } = config.config;
  if (maxBatchSize === 0 && input.length + output.length === 0) config.setMaxBatchSize(MAX_BATCH_SIZE);
  if (config.config.maxBatchSize > 1 && sequenceBatching === undefined) config.setDynamicBatching();
  for (const { name, dtype, shape } of inputs) config.addInput({ name, dataType: dtype, dims: shape });
  for (const { name, dtype, shape } of outputs) config.addOutput({ name, dataType: dtype, dims: shape });
}
