import { errorFor, type TritonError } from "@tritonjs/protocol";
import type { ModelVersion } from "./model-version.js";
import type { RegisteredVersion } from "./version-status.js";

export type Versions<V extends RegisteredVersion = RegisteredVersion> = Map<number, V>;

/**
 * Picks the versions that a name means: those of its only namespace, or of the only one that is not unloaded.
 *
 * @param spaces versions of the name by namespace; undefined for an unknown name
 * @param namespacing true if models of several repositories may have one name
 * @throws TritonError NOT_FOUND or INVALID_ARG for an unknown name; INVALID_ARG for a name that several repositories
 * have.
 */
export function pickNamespace<V extends RegisteredVersion>(
  name: string,
  spaces: ReadonlyMap<string, Versions<V>> | undefined,
  namespacing: boolean,
): Versions<V> {
  if (spaces === undefined) throw unknownModel(name, namespacing);
  if (!namespacing) return spaces.get("")!;
  const live = [...spaces.values()].filter(
    (versions) => versions.size === 0 || [...versions.values()].some((one) => one.reason !== "unloaded"),
  );
  if (live.length === 1) return live[0]!;
  if (live.length === 0) {
    throw errorFor("UNKNOWN_MODEL", `Identifier of model '${name}' is not found in global map`);
  }
  throw errorFor(
    "AMBIGUOUS_MODEL",
    `There are ${live.length} identifiers of model '${name}' in global map, model namespace must be provided to ` +
      "resolve ambiguity.",
  );
}

export function pickVersion<V extends RegisteredVersion>(
  name: string,
  versions: Versions<V>,
  version: bigint | undefined,
): V {
  if (version === undefined) {
    const latest = latestReady(versions);
    if (latest !== undefined) return latest;
    throw versionNotFound(`'${name}' has no available versions${whyNot([...versions.values()])}`);
  }
  const model = versions.get(Number(version));
  if (model === undefined) throw versionNotFound(`'${name}' version ${version} is not found`);
  if (model.state === "READY") return model;
  const text = `Request for unknown model: '${name}' version ${version} is not at ready state`;
  throw errorFor("MODEL_NOT_READY", text + whyNot([model]));
}

/** True for a version in service. Only a `ModelVersion` is ever READY. */
export function isReady(version: RegisteredVersion): version is ModelVersion {
  return version.state === "READY";
}

function versionNotFound(what: string): TritonError {
  return errorFor("UNKNOWN_MODEL", `Request for unknown model: ${what}`);
}

function unknownModel(name: string, namespacing: boolean): TritonError {
  if (!namespacing) return versionNotFound(`'${name}' is not found`);
  return errorFor("MODEL_NOT_AVAILABLE", `Request for unknown model: '${name}' is not found`);
}

function latestReady<V extends RegisteredVersion>(versions: Versions<V>): V | undefined {
  let latest: V | undefined;
  for (const one of versions.values()) {
    if (one.state === "READY" && (latest === undefined || one.version > latest.version)) latest = one;
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

const MAX_VERSION = 2n ** 63n - 1n;

/**
 * Reads a version like C++ `stol`: leading space and sign, then digits; the rest is ignored. Undefined for an empty
 * string.
 *
 * @throws TritonError INVALID_ARG if there is no 64-bit number, or a negative one.
 */
export function parseVersion(text: string): bigint | undefined {
  if (text === "") return undefined;
  const digits = /^\s*([+-]?)0*(\d+)/.exec(text);
  const version = digits === null ? MAX_VERSION + 1n : BigInt(digits[2]!.slice(0, 20));
  if (version > MAX_VERSION) {
    throw errorFor(
      "INVALID_VERSION",
      `failed to get model version from specified version string '${text}' (details: stol), ` +
        "version should be an integral value > 0",
    );
  }
  if (digits![1] === "-" && version > 0n) {
    throw errorFor(
      "INVALID_VERSION",
      `invalid model version specified '${text}' , version should be an integral value > 0`,
    );
  }
  return version;
}
