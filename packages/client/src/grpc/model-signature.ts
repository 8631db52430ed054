import type { ModelConfig, ModelSignature } from "@tritonjs/protocol";
import { modelSignature } from "../model/model-signature.js";

/**
 * Reads the signature of a model from its configuration.
 *
 * @throws TritonError INTERNAL for unknown data types.
 */
export function signatureOf(
  modelName: string,
  { maxBatchSize, modelTransactionPolicy, input }: ModelConfig,
): ModelSignature {
  const decoupled = modelTransactionPolicy?.decoupled === true;
  return modelSignature(modelName, { maxBatchSize, decoupled, inputs: input });
}
