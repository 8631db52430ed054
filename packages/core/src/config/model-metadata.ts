import {
  fromConfigDataType,
  type ModelConfig,
  type ModelInput,
  type ModelMetadata,
  type ModelOutput,
  type TensorMetadata,
} from "@tritonjs/protocol";

/** The v2 metadata of a model whose `versions` are served. */
export function modelMetadata(config: ModelConfig, versions: readonly number[]): ModelMetadata {
  const tensor = ({ name, dataType, dims }: ModelInput | ModelOutput): TensorMetadata => ({
    name,
    datatype: fromConfigDataType(dataType) ?? "<invalid>",
    shape: config.maxBatchSize > 0 ? [-1, ...dims] : [...dims],
  });
  return {
    name: config.name,
    versions: versions.map(String),
    platform: config.platform === "" ? config.backend : config.platform,
    inputs: config.input.map(tensor),
    outputs: config.output.map(tensor),
  };
}
