import { type ModelConfig, TritonError } from "@tritonjs/protocol";
import { type ModelType, modelTypeOf } from "../readers/model-type.js";

/** Settings in a model's configuration. */
export interface FilParameters {
  readonly modelType: ModelType;
  readonly isClassifier: boolean;
  readonly predictProba: boolean;
  readonly threshold: number;
  readonly allowUnknownFields: boolean;
}

/** Parameters that Triton removed in 25.09, with their replacements. */
const REPLACED: Readonly<Record<string, string>> = {
  algo: "layout",
  threads_per_tree: "chunk_size",
  output_class: "is_classifier",
};
const REMOVED: readonly string[] = ["storage_type", "blocks_per_sm"];

/**
 * Reads the parameters of Triton's FIL backend. Parameters that tune the GPU, and `cpu_nthread`, have no effect here.
 *
 * @param warn gets a text for each parameter that Triton has removed
 * @throws TritonError INVALID_ARG, INTERNAL or UNSUPPORTED in the words of Triton's backend
 */
export function readFilParameters(
  { parameters }: ModelConfig,
  warn: (message: string) => void,
): FilParameters {
  const text = (key: string) => parameters[key]?.stringValue;
  for (const [removed, next] of Object.entries(REPLACED)) {
    if ((text(removed) ?? "") === "") continue;
    warn(`The \`${removed}\` parameter has been removed in 25.09 release. Use \`${next}\` instead.`);
  }
  for (const removed of REMOVED) {
    if ((text(removed) ?? "") !== "") warn(`The \`${removed}\` parameter has been removed in 25.09 release.`);
  }
  if (text("use_experimental_optimizations") === "true")
    warn("use_experimental_optimizations option is deprecated. It will be removed in the 25.10 release.");
  const flag = (key: string, otherwise: boolean) => {
    const given = text(key);
    return given === undefined ? otherwise : booleanOf(key, given);
  };
  const older = text("output_class");
  const isClassifier =
    older === "true" || older === "false"
      ? older === "true"
      : booleanOf("is_classifier", need(text, "is_classifier"));
  return {
    predictProba: flag("predict_proba", false),
    modelType: modelTypeOf(text("model_type") ?? "xgboost"),
    allowUnknownFields: flag("xgboost_allow_unknown_field", false),
    isClassifier,
    threshold: isClassifier ? numberOf("threshold", text("threshold") ?? "0.5") : 0.5,
  };
}

function need(text: (key: string) => string | undefined, key: string): string {
  const given = text(key);
  if (given !== undefined) return given;
  throw new TritonError("INVALID_ARG", `Required parameter ${key} not found in config`, {
    reason: "INVALID_CONFIG",
  });
}

function booleanOf(key: string, text: string): boolean {
  if (text === "true" || text === "false") return text === "true";
  throw new TritonError("INTERNAL", `Expected 'true' or 'false' for parameter '${key}', got: '${text}'`);
}

function numberOf(key: string, text: string): number {
  const value = Number.parseFloat(text);
  if (!Number.isNaN(value)) return Math.fround(value);
  throw new TritonError("INVALID_ARG", `Bad input for parameter ${key}`, { reason: "INVALID_CONFIG" });
}
