import type { IndexRow } from "../lifecycle/scenario.js";

/** One model that the recorded server loaded on request: its files and the outcome. */
export interface LoadCase {
  readonly id: string;
  readonly model: string;
  readonly server_flags: readonly string[];
  /** By path in the model's directory; a path that ends in `/` is an empty directory. */
  readonly files: Readonly<Record<string, string | { readonly base64: string }>>;
  /** `ensemble-members`: models beside it. */
  readonly other_models?: string;
  /** Absent where the server ended: `server` says how. */
  readonly load?: LoadAnswer;
  readonly server?: unknown;
  /** Rows of the model. */
  readonly index?: readonly IndexRow[];
  /** Rows of the models beside it. */
  readonly index_others?: readonly IndexRow[];
  readonly config?: unknown;
  /** The configuration as it was sent, where the form of numbers matters. */
  readonly config_raw?: string;
  readonly metadata?: unknown;
  /** Status of the model's readiness. */
  readonly ready?: number;
  /** Lines of errors and warnings in the server's log. */
  readonly log?: readonly string[];
}

/** The answer to the load request. */
export interface LoadAnswer {
  readonly status: number;
  readonly body: "" | { readonly error: string };
}

/** The outcome of a load here. */
export type PlayedLoad = Required<
  Pick<LoadCase, "load" | "index" | "index_others" | "config" | "config_raw" | "metadata" | "ready">
>;

/** True for a model that runs Python code. */
export function isPython({ files }: Pick<LoadCase, "files">): boolean {
  const { "config.pbtxt": text = "" } = files;
  return (
    Object.keys(files).some((path) => path.endsWith(".py")) ||
    (typeof text === "string" && /backend:\s*"python"/.test(text))
  );
}

/** The text of a configuration; empty where there is none or it is not UTF-8. */
export function configText({ files, server_flags: flags }: Pick<LoadCase, "files" | "server_flags">): string {
  const named = flags.find((flag) => flag.startsWith("--model-config-name="))?.split("=")[1];
  const text = files[`configs/${named}.pbtxt`] ?? files["config.pbtxt"] ?? "";
  return typeof text === "string" ? text : "";
}
