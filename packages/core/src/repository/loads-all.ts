import { TritonError } from "../errors/triton-error.js";
import type { RepositoryOptions } from "./repository-options.js";

/**
 * True when all models are loaded at the start, false when those of `loadModel` are.
 *
 * @throws TritonError INVALID_ARG for `*` beside names
 */
export function loadsAll({ modelControlMode, loadModel = [] }: RepositoryOptions): boolean {
  if (modelControlMode !== "explicit") return true;
  if (!loadModel.includes("*")) return false;
  if (loadModel.length === 1) return true;
  throw new TritonError(
    "INVALID_ARG",
    "Wildcard model name '*' must be the ONLY startup model if specified at all.",
    { reason: "INVALID_OPTION" },
  );
}
