import { TritonError } from "@tritonjs/protocol";

/** A model of a repository: its name, and its repository if namespaces are on. */
export interface ModelId {
  /** Path of the repository if namespaces are on, otherwise empty. */
  readonly namespace: string;
  readonly name: string;
}

/** A model id as the key of a map. */
export type ModelKey = string;

export function keyOf({ namespace, name }: ModelId): ModelKey {
  return `${namespace}\0${name}`;
}

/** Name of the model with the key. */
export function nameOf(key: ModelKey): string {
  return key.slice(key.indexOf("\0") + 1);
}

/** Order of the index: by repository, then by name. */
export function compareIds(a: ModelId, b: ModelId): number {
  return compare(a.namespace, b.namespace) || compare(a.name, b.name);
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

/**
 * Rejects names that cannot be a directory inside a repository.
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
