import type { ModelIndexEntry } from "@tritonjs/protocol";
import type { RegisteredVersion } from "../model/registered-version.js";
import type { ModelRegistry } from "../model/registry.js";
import { compareIds, keyOf, type ModelId, type ModelKey } from "./model-id.js";
import type { RepositorySource } from "./sources/repository-source.js";

/** The source of the index. */
export interface IndexSource {
  readonly repositories: readonly RepositorySource[];
  readonly namespacing: boolean;
  readonly registry: ModelRegistry;
  /** Why models without any version are unavailable. */
  readonly problemOf: (key: ModelKey) => string | undefined;
}

/**
 * The repository index. It has the models in the directories of the repositories and the models that the program binds,
 * with their present and past versions. A model that two repositories have is unavailable.
 */
export async function indexRows(onlyReady: boolean, source: IndexSource): Promise<ModelIndexEntry[]> {
  const { registry } = source;
  const { ids, duplicates } = await modelsIn(source);
  return [...ids]
    .sort(([, a], [, b]) => compareIds(a, b))
    .flatMap(([key, { name, namespace }]) => {
      if (duplicates.has(key)) {
        return [{ name, state: "UNAVAILABLE", reason: "model appears in two or more repositories" }];
      }
      const versions = registry.versions(name, namespace);
      const reason = source.problemOf(key);
      if (versions.length === 0 && !onlyReady) {
        return [reason === undefined ? { name } : { name, state: "UNAVAILABLE", reason }];
      }
      return versions.filter(({ state }) => !onlyReady || state === "READY").map(rowOf);
    });
}

async function modelsIn({ repositories, namespacing, registry }: IndexSource) {
  const ids = new Map<ModelKey, ModelId>();
  const duplicates = new Set<ModelKey>();
  const listed = await Promise.all(repositories.map((repository) => repository.listed()));
  for (const [i, { path }] of repositories.entries()) {
    for (const name of listed[i]!) {
      const id = { namespace: namespacing ? path : "", name };
      const key = keyOf(id);
      if (ids.has(key)) duplicates.add(key);
      ids.set(key, id);
    }
  }
  for (const { name } of registry.bound()) {
    const id = { namespace: "", name };
    duplicates.delete(keyOf(id));
    ids.set(keyOf(id), id);
  }
  return { ids, duplicates };
}

function rowOf({ name, version, state, reason }: RegisteredVersion): ModelIndexEntry {
  return { name, version: String(version), state, ...(reason === "" ? {} : { reason }) };
}
