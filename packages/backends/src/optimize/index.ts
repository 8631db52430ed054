export { type FixedShapes, fixShapes } from "../onnx-graph/clean-up.js";
export type { DynamicInt8Options } from "../onnx-graph/dynamic-int8.js";
export { FLOAT_OPERATORS } from "../onnx-graph/half-precision.js";
export type { Int4Options } from "../onnx-graph/int4-weights.js";
export type { LayerOptions, VariantChanges } from "../onnx-graph/layer-choice.js";
export {
  addPooling,
  addScores,
  type PoolingHead,
  type PoolingMode,
  type ScoreActivation,
} from "../onnx-graph/model-head.js";
export { OnnxModel, replaceFile, type WriteOptions } from "../onnx-graph/onnx-model.js";
export type { CalibrationMethod, ValueRange } from "../onnx-graph/quantization.js";
export type { CalibrationOptions } from "./calibrate.js";
export {
  compareLayers,
  type Labels,
  type LayerError,
  type OutputError,
  Reference,
  type VariantComparison,
} from "./compare-models.js";
export { type GenerateOptions, generateSamples } from "./generate-samples.js";
export { importModel } from "./import-model.js";
export type { ImportOptions, ImportPlace, ModelImporter } from "./model-importer.js";
export { ModelRunner, type RunOptions, type Sample } from "./model-runner.js";
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
