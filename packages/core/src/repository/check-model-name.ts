import { TritonError } from "../errors/triton-error.js";

/**
 * Refuses names that are no directory inside a repository.
 *
 * @throws TritonError INVALID_ARG with Triton's texts.
 */
export function checkModelName(name: string): void {
  const trimmed = name.trim();
  if (trimmed === "") {
    throw new TritonError("INVALID_ARG", "Model name cannot be empty. Please enter a valid name to deploy.", {
      reason: "INVALID_LOAD_REQUEST",
    });
  }
  if (trimmed === "." || trimmed === ".." || /[/\\\0]/.test(trimmed)) {
    throw new TritonError(
      "INVALID_ARG",
      `invalid model name '${name}', model name must not contain path traversal characters`,
      { reason: "INVALID_LOAD_REQUEST" },
    );
  }
}
