import type { ModelDescription } from "@tritonjs/core/backend";
import {
  type DataType,
  type DescribedTensor,
  fromConfigDataType,
  isDataType,
  type ModelMetadata,
  TritonError,
} from "@tritonjs/protocol";

/** A model as its server describes it. */
export interface RemoteDescription extends ModelDescription {
  /** True if the server's model keeps a state for each sequence. */
  readonly sequences: boolean;
}

/** The parts of a configuration that matter here, independent of their spelling. */
export interface ConfigParts {
  readonly maxBatchSize: number;
  readonly decoupled: boolean;
  readonly sequences: boolean;
  readonly inputs: readonly ConfigTensor[];
  readonly outputs: readonly ConfigTensor[];
}

interface ConfigTensor {
  readonly name: string;
  readonly dataType: string;
  readonly dims: readonly number[];
  readonly optional?: boolean | undefined;
}

/**
 * The description of a model by its configuration.
 *
 * @throws TritonError INTERNAL for unknown data types.
 */
export function describeConfig(modelName: string, config: ConfigParts): RemoteDescription {
  const described = ({ name, dataType, dims, optional }: ConfigTensor): DescribedTensor => ({
    name,
    dtype: knownType(modelName, name, fromConfigDataType(dataType), dataType),
    shape: dims.map(Number),
    ...(optional && { optional: true }),
  });
  return {
    asInConfig: true,
    maxBatchSize: config.maxBatchSize,
    decoupled: config.decoupled,
    sequences: config.sequences,
    inputs: config.inputs.map(described),
    outputs: config.outputs.map(described),
  };
}

/**
 * The description of a model by its metadata, for servers that have no configurations. Shapes have all dimensions.
 *
 * @throws TritonError INTERNAL for unknown data types.
 */
export function describeMetadata(modelName: string, { inputs, outputs }: ModelMetadata): RemoteDescription {
  const described = ({ name, datatype, shape }: ModelMetadata["inputs"][number]): DescribedTensor => ({
    name,
    dtype: knownType(modelName, name, isDataType(datatype) ? datatype : undefined, datatype),
    shape: shape.map(Number),
  });
  return { sequences: false, inputs: inputs.map(described), outputs: outputs.map(described) };
}

function knownType(model: string, tensor: string, datatype: DataType | undefined, got: string): DataType {
  if (datatype !== undefined) return datatype;
  throw new TritonError(
    "INTERNAL",
    `tensor '${tensor}' of model '${model}': expected a known data type, got '${got}'`,
    { reason: "INVALID_ANSWER" },
  );
}
