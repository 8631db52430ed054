export { TEXT_INPUTS, TEXT_OUTPUTS } from "./tensors/text-model-tensors.js";
