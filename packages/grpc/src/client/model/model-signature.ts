import { type DataType, fromConfigDataType, type ModelConfig, TritonError } from "../core.js";

/** An input of a model. */
export interface SignatureInput {
  readonly name: string;
  readonly datatype: DataType;
  /** Without the batch axis; -1 for any size. */
  readonly dims: readonly number[];
  readonly optional: boolean;
}

/** What a client needs to know of a model to check its inputs. */
export interface ModelSignature {
  readonly modelName: string;
  /** 0 for a model without a batch axis. */
  readonly maxBatchSize: number;
  readonly decoupled: boolean;
  readonly inputs: ReadonlyMap<string, SignatureInput>;
}

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
