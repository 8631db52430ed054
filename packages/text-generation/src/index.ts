export { readSamplingParameters, type SamplingSource } from "./sampling/read-sampling-parameters.js";
export type { ResponseFormat, SamplingParameters } from "./sampling/sampling-parameters.js";
export { TEXT_INPUTS, TEXT_OUTPUTS } from "./tensors/text-model-tensors.js";
