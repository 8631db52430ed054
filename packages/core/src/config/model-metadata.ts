import { fromConfigDataType } from "../tensor/data-type.js";
import type { ModelConfig, ModelInput, ModelOutput } from "./model-config.js";

/** A tensor as the v2 metadata shows it: with the batch axis, when the model has one, as a leading -1. */
export interface TensorMetadata {
  readonly name: string;
  readonly datatype: string;
  readonly shape: number[];
}

/** The answer of `GET v2/models/M`. */
export interface ModelMetadata {
  readonly name: string;
  readonly versions: string[];
  readonly platform: string;
  readonly inputs: TensorMetadata[];
  readonly outputs: TensorMetadata[];
}

/** The v2 metadata of a model of which `versions` are served. */
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
