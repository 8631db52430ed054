import type { ModelVersionPolicy } from "@tritonjs/protocol";

/** The versions among the names of a model's directories. */
export interface VersionDirectories {
  /** Ascending. */
  readonly versions: readonly number[];
  /** Why directories are not versions, one line each. */
  readonly ignored: readonly string[];
}

/** Directories of a model that do not hold a version. */
const OTHER_DIRECTORIES = ["warmup", "initial_state", "configs"];

/** Sorts the names of a model's directories into versions and ignored names. */
export function readVersionDirectories(names: readonly string[]): VersionDirectories {
  const versions: number[] = [];
  const ignored: string[] = [];
  for (const name of names) {
    if (OTHER_DIRECTORIES.includes(name)) continue;
    const problem = problemOf(name);
    if (problem === undefined) versions.push(Number(name));
    else ignored.push(`ignore version directory '${name}' which ${problem}`);
  }
  return { versions: versions.sort((a, b) => a - b), ignored };
}

function problemOf(name: string): string | undefined {
  if (/^0./.test(name)) return "contains leading zeros in its directory name";
  if (!/^-?\d+$/.test(name)) return "fails to convert to integral number";
  const version = Number(name);
  if (version < 1) return "is not a version: expected an integer of at least 1";
  return Number.isSafeInteger(version) ? undefined : "is too large for a version";
}

/** The versions that a policy selects. */
export interface ChosenVersions {
  /** Ascending. */
  readonly versions: readonly number[];
  /** Versions that the policy names and that do not exist. */
  readonly missing: readonly number[];
}

/** Selects the versions that a policy serves. An empty policy serves all versions. */
export function versionsToLoad(
  existing: readonly number[],
  { latest, all, specific }: ModelVersionPolicy,
): ChosenVersions {
  if (specific !== undefined) {
    return {
      versions: existing.filter((version) => specific.versions.includes(version)),
      missing: specific.versions.filter((version) => !existing.includes(version)),
    };
  }
  const count = all !== undefined || latest === undefined ? existing.length : latest.numVersions;
  return { versions: count === 0 ? [] : existing.slice(-count), missing: [] };
}
