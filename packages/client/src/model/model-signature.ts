import { fromConfigDataType, type ModelSignature, TritonError } from "@tritonjs/protocol";

/** The parts of a configuration that a signature needs, independent of their spelling. */
export interface SignatureParts {
  readonly maxBatchSize: number;
  readonly decoupled: boolean;
  readonly inputs: readonly {
    readonly name: string;
    /** Data type in the configuration's spelling: `TYPE_FP32`. */
    readonly dataType: string;
    readonly dims: readonly number[];
    readonly optional: boolean;
  }[];
}

/**
 * Makes the signature of a model, which is the part of its configuration that a client needs.
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
