import { TritonError } from "../errors/triton-error.js";
import type { Log } from "../observe/log/log.js";
import { subdirectories } from "./layout/list-directory.js";
import { readVersionDirectories, versionsToLoad } from "./layout/versions-to-load.js";
import type { PolledModel } from "./poll-model.js";

/**
 * The versions of a model that its policy chooses of those that are there, ascending.
 *
 * @throws TritonError INVALID_ARG when there is none
 */
export async function findVersions(
  { id, directory, config }: PolledModel,
  log: Log,
): Promise<readonly number[]> {
  const found = readVersionDirectories(await subdirectories(directory));
  for (const line of found.ignored) log.warning(line);
  const { versions, missing } = versionsToLoad(found.versions, config.versionPolicy ?? {});
  for (const version of missing) {
    log.error(
      `version ${version} is specified for model '${id.name}', but the version directory is not present`,
    );
  }
  if (versions.length > 0) return versions;
  throw new TritonError(
    "INVALID_ARG",
    `at least one version must be available under the version policy of model '${id.name}'`,
    { reason: "INVALID_CONFIG" },
  );
}
