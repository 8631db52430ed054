import { TritonError } from "@tritonjs/protocol";
import type { Log } from "../observe/log.js";
import type { ModelVersion } from "./model-version.js";

/**
 * Asks a version in service whether it is ready, for the readiness of the server.
 *
 * @param countsCrashes whether a version without an instance that runs is not ready
 */
export async function saysReady(model: ModelVersion, log: Log, countsCrashes: boolean): Promise<boolean> {
  if (model.crashReason !== undefined) return !countsCrashes;
  return (await unreadyReason(model, log)) === undefined;
}

/** Asks a version in service why it is not ready. A reason is also logged at verbose level 1. */
export async function unreadyReason(
  { name, version, instances, residence }: ModelVersion,
  log: Log,
): Promise<string | undefined> {
  try {
    if (residence?.problem !== undefined) return residence.problem;
    if (instances.crashReason !== undefined) throw instances.crashReason;
    await instances.checkReady();
    return undefined;
  } catch (error) {
    const { message } = TritonError.from(error);
    log.verbose(1, `Model '${name}' version ${version} is not ready: ${message}`);
    return message;
  }
}
