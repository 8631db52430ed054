import { TritonError } from "@tritonjs/protocol";
import { ModelVersion } from "./model-version.js";
import type { RegisteredVersion } from "./registered-version.js";

/** Versions of one model by number. */
export type Versions = Map<number, RegisteredVersion>;

/**
 * Picks the version that a request means: the one it names, or the highest that is ready.
 *
 * @throws TritonError NOT_FOUND for a missing version, or if none is ready; UNAVAILABLE for a version that is not
 * ready.
 */
export function pickVersion(name: string, versions: Versions, version: bigint | undefined): ModelVersion {
  if (version === undefined) {
    const latest = latestReady(versions);
    if (latest !== undefined) return latest;
    throw versionNotFound(`'${name}' has no available versions${whyNot([...versions.values()])}`);
  }
  const model = versions.get(Number(version));
  if (model === undefined) throw versionNotFound(`'${name}' version ${version} is not found`);
  if (isReady(model)) return model;
  const text = `Request for unknown model: '${name}' version ${version} is not at ready state`;
  throw new TritonError("UNAVAILABLE", text + whyNot([model]), { reason: "MODEL_NOT_READY" });
}

export function isReady(version: RegisteredVersion): version is ModelVersion {
  return version.state === "READY" && version instanceof ModelVersion;
}

export function versionNotFound(what: string): TritonError {
  return new TritonError("NOT_FOUND", `Request for unknown model: ${what}`, { reason: "UNKNOWN_MODEL" });
}

function latestReady(versions: Versions): ModelVersion | undefined {
  let latest: ModelVersion | undefined;
  for (const one of versions.values()) {
    if (isReady(one) && (latest === undefined || one.version > latest.version)) latest = one;
  }
  return latest;
}

/** Reason why a bound ensemble is not ready. */
function whyNot(versions: readonly RegisteredVersion[]): string {
  return versions
    .filter(({ isEnsemble, reason }) => isEnsemble && reason !== "" && reason !== "unloaded")
    .map(({ reason }) => `: ${reason}`)
    .join("");
}
