import type { ModelConfigAnswer, ModelConfigTensor } from "../calls/server-answers.js";
import { fromConfigDataType, type ModelSignature, type SignatureInput, TritonError } from "../core.js";

/**
 * Reads a model's configuration.
 *
 * @throws TritonError INTERNAL for one that names no inputs or unknown data types.
 */
export function modelSignature(modelName: string, config: ModelConfigAnswer): ModelSignature {
  if (!Array.isArray(config?.input)) {
    throw new TritonError("INTERNAL", `the server's configuration of model '${modelName}' has no inputs`);
  }
  const inputs = (config.input as readonly ModelConfigTensor[]).map((input) =>
    signatureInput(modelName, input),
  );
  return {
    modelName,
    maxBatchSize: Number(config.max_batch_size ?? 0),
    decoupled: config.model_transaction_policy?.decoupled === true,
    inputs: new Map(inputs.map((input) => [input.name, input])),
  };
}

function signatureInput(
  modelName: string,
  { name, data_type, dims, optional }: ModelConfigTensor,
): SignatureInput {
  const datatype = fromConfigDataType(data_type);
  if (datatype === undefined) {
    throw new TritonError("INTERNAL", `input '${name}' of model '${modelName}' has data type '${data_type}'`);
  }
  return { name, datatype, dims: dims.map(Number), optional: optional === true };
}
