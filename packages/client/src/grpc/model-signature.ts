import type { ModelConfig, ModelSignature } from "@tritonjs/protocol";
import { modelSignature } from "../model/model-signature.js";

/**
 * What the clients of a model need to know of its configuration.
 *
 * @throws TritonError INTERNAL for one with unknown data types.
 */
export function signatureOf(
  modelName: string,
  { maxBatchSize, modelTransactionPolicy, input }: ModelConfig,
): ModelSignature {
  const decoupled = modelTransactionPolicy?.decoupled === true;
  return modelSignature(modelName, { maxBatchSize, decoupled, inputs: input });
}
