import type { ModelConfig, Tensor } from "@tritonjs/protocol";
import type { InferenceResponse } from "../../request/inference-response.js";
import type { PendingRequest } from "../../request/pending-request.js";

import { type EnsembleTensor, innerDimsOf } from "./ensemble-tensor.js";
import { sequenceParameters } from "./step-request.js";
import { sequenceOf } from "./step-sequence.js";

/**
 * Makes the answer of an ensemble from these outputs, all of which exist. An output that a step left out is left out.
 */
export function ensembleAnswer(
  { config, version }: { readonly config: ModelConfig; readonly version: string },
  request: PendingRequest,
  names: readonly string[],
  tensors: ReadonlyMap<string, EnsembleTensor>,
): InferenceResponse {
  const outputs = new Map<string, Tensor>();
  for (const name of names) {
    const tensor = tensors.get(name)!.take(innerDimsOf(config.output, name), config.maxBatchSize > 0);
    if (tensor !== undefined) outputs.set(name, tensor);
  }
  const sequence = sequenceOf([...outputs.keys()].reverse(), tensors, request);
  const parameters = sequenceParameters(sequence, outputs);
  return { modelName: config.name, modelVersion: version, id: request.id, parameters, outputs };
}
