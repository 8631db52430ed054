import type { ModelConfig } from "../../config/model-config.js";
import { TritonError } from "../../errors/triton-error.js";

/**
 * A whole number from a model's parameters; 0 for none.
 *
 * @throws TritonError INVALID_ARG for anything else.
 */
export function wholeNumber({ name, parameters }: ModelConfig, key: string): number {
  const text = parameters[key]?.stringValue ?? "0";
  const value = Number(text);
  if (text.trim() === "" || !Number.isSafeInteger(value) || value < 0) {
    throw new TritonError(
      "INVALID_ARG",
      `parameter '${key}' of model '${name}': expected an integer of at least 0, got '${text}'`,
      { reason: "INVALID_CONFIG" },
    );
  }
  return value;
}
