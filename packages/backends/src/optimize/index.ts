export type { FixedShapes } from "../onnx-graph/clean-up.js";
export type { VariantChanges } from "../onnx-graph/layer-choice.js";
export { addPooling, addScores, type PoolingMode, type ScoreActivation } from "../onnx-graph/model-head.js";
export { OnnxModel, replaceFile } from "../onnx-graph/onnx-model.js";
export {
  compareLayers,
  type Labels,
  type LayerError,
  Reference,
  type VariantComparison,
} from "./compare-models.js";
export { type GenerateOptions, generateSamples } from "./generate-samples.js";
export { importModel } from "./import-model.js";
export type { ImportOptions } from "./model-importer.js";
export { ModelRunner, type Sample } from "./model-runner.js";
export {
  makeVariant,
  prepareModel,
  saveOptimizedForm,
  VARIANT_TEXTS,
  VARIANTS,
  type VariantName,
  type VariantOptions,
  writeVariant,
} from "./variants.js";
