import {
  fromConfigDataType,
  type ModelConfig,
  type ModelSignature,
  type SignatureInput,
  TritonError,
} from "../core.js";

/**
 * Reads a model's configuration.
 *
 * @throws TritonError INTERNAL for one with unknown data types.
 */
export function modelSignature(modelName: string, config: ModelConfig): ModelSignature {
  const inputs = config.input.map((input) => signatureInput(modelName, input));
  return {
    modelName,
    maxBatchSize: config.maxBatchSize,
    decoupled: config.modelTransactionPolicy?.decoupled === true,
    inputs: new Map(inputs.map((input) => [input.name, input])),
  };
}

function signatureInput(
  modelName: string,
  { name, dataType, dims, optional }: ModelConfig["input"][number],
): SignatureInput {
  const datatype = fromConfigDataType(dataType);
  if (datatype === undefined) {
    throw new TritonError("INTERNAL", `input '${name}' of model '${modelName}' has data type '${dataType}'`);
  }
  return { name, datatype, dims, optional };
}
