import { fromConfigDataType, type ModelSignature, TritonError } from "@tritonjs/protocol";

/** What a signature is made of: parts of a configuration, however its fields are written. */
export interface SignatureParts {
  readonly maxBatchSize: number;
  readonly decoupled: boolean;
  readonly inputs: readonly {
    readonly name: string;
    /** As the configuration has it: `TYPE_FP32`. */
    readonly dataType: string;
    readonly dims: readonly number[];
    readonly optional: boolean;
  }[];
}

/**
 * What a client needs to know of a model.
 *
 * @throws TritonError INTERNAL for unknown data types.
 */
export function modelSignature(
  modelName: string,
  { maxBatchSize, decoupled, inputs }: SignatureParts,
): ModelSignature {
  const signatures = inputs.map(({ name, dataType, dims, optional }) => {
    const datatype = fromConfigDataType(dataType);
    if (datatype === undefined) {
      throw new TritonError(
        "INTERNAL",
        `input '${name}' of model '${modelName}': expected a known data type, got '${dataType}'`,
        { reason: "INVALID_ANSWER" },
      );
    }
    return { name, datatype, dims, optional };
  });
  return {
    modelName,
    maxBatchSize,
    decoupled,
    inputs: new Map(signatures.map((input) => [input.name, input])),
  };
}
