import type { IndexRow } from "../lifecycle/scenario.js";

/** One model that the recorded server loaded on request: its files, and all that came of it. */
export interface LoadCase {
  readonly id: string;
  readonly model: string;
  readonly server_flags: readonly string[];
  /** By path in the model's directory; a path that ends in `/` is an empty directory. */
  readonly files: Readonly<Record<string, string | { readonly base64: string }>>;
  /** `ensemble-members`: models beside it. */
  readonly other_models?: string;
  readonly load: { readonly status: number; readonly body: "" | { readonly error: string } };
  readonly index: readonly IndexRow[];
  readonly config?: unknown;
  readonly metadata?: unknown;
}

/** True for a model that runs Python code. */
export function isPython({ files }: Pick<LoadCase, "files">): boolean {
  const { "config.pbtxt": text = "" } = files;
  return (
    Object.keys(files).some((path) => path.endsWith(".py")) ||
    (typeof text === "string" && /backend:\s*"python"/.test(text))
  );
}
