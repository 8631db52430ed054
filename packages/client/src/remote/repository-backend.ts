import type { BackendFactory, ModelSource } from "@tritonjs/core/backend";
import { TritonError } from "@tritonjs/protocol";
import { remote } from "./remote.js";
import type { RemoteOptions, RemoteProtocol } from "./remote-options.js";

/** Parameters of a configuration that are numbers, with their options. */
const NUMBERS = {
  concurrency: "concurrency",
  retries: "retries",
  hedge_after_ms: "hedgeAfterMs",
  timeout_ms: "timeoutMs",
  init_timeout_ms: "initTimeoutMs",
  lookup_interval_ms: "lookupIntervalMs",
} as const satisfies Record<string, keyof RemoteOptions>;

/** Parameters that are true or false. */
const FLAGS = {
  idempotent: "idempotent",
  retry_unavailable: "retryUnavailable",
} as const satisfies Record<string, keyof RemoteOptions>;

/**
 * The backend `remote` of a repository. The parameters of the configuration are the options of {@link remote}, in
 * Triton's spelling; the settings of the backend are defaults for all models.
 */
export const remoteBackend: BackendFactory = (source) => remote(remoteOptionsOf(source));

/**
 * Reads the options from the parameters of a configuration.
 *
 * @throws TritonError INVALID_ARG that names the parameter, the expected and the given value.
 */
export function remoteOptionsOf(source: Pick<ModelSource, "name" | "config" | "settings">): RemoteOptions {
  const text = (key: string): string | undefined =>
    source.config.parameters[key]?.stringValue ?? source.settings[key.replaceAll("_", "-")];
  const urls = (text("urls") ?? "").split(/[\s,]+/).filter((url) => url !== "");
  if (urls.length === 0)
    throw invalid(source.name, "urls", "addresses of servers, separated by commas", text("urls"));
  const numbers = Object.entries(NUMBERS).flatMap(([key, option]) => {
    const value = text(key);
    if (value === undefined) return [];
    if (value.trim() === "" || Number.isNaN(Number(value)))
      throw invalid(source.name, key, "a number", value);
    return [[option, Number(value)]];
  });
  const flags = Object.entries(FLAGS).flatMap(([key, option]) => {
    const value = text(key);
    if (value === undefined) return [];
    if (value !== "true" && value !== "false") throw invalid(source.name, key, "true or false", value);
    return [[option, value === "true"]];
  });
  const version = text("model_version");
  const protocol = text("protocol") as RemoteProtocol | undefined;
  const accessToken = text("access_token");
  return {
    urls,
    model: text("model_name") ?? source.name,
    ...(version !== undefined && { version }),
    ...(protocol !== undefined && { protocol }),
    ...(accessToken !== undefined && { accessToken }),
    ...Object.fromEntries([...numbers, ...flags]),
  };
}

function invalid(model: string, key: string, expected: string, got: string | undefined): TritonError {
  return new TritonError(
    "INVALID_ARG",
    `parameter '${key}' of model '${model}': expected ${expected}, got ${got === undefined ? "nothing" : `'${got}'`}`,
    { reason: "INVALID_CONFIG" },
  );
}
