import { TritonError } from "@tritonjs/protocol";
import type { ModelVersion } from "../model/model-version.js";
import type { ModelRegistry } from "../model/registry.js";
import type { Log } from "../observe/log/log.js";

/** Whether a model can be used. */
export interface ModelReadiness {
  readonly ready: boolean;
  /** Why the model is not ready; empty if it is ready or no reason is known. */
  readonly reason: string;
}

/** The sources of the readiness of models. */
export interface ReadinessSource {
  readonly registry: ModelRegistry;
  readonly repository: { problemOf(name: string): string | undefined };
  readonly log: Log;
}

/**
 * Looks a model up and asks it whether it is ready. A model that is not served has the reasons of its versions.
 *
 * @param version version in decimal digits; empty for the highest that is ready
 */
export async function modelReadiness(
  name: string,
  version: string,
  { registry, repository, log }: ReadinessSource,
): Promise<ModelReadiness> {
  let model: ModelVersion;
  try {
    model = registry.find(name, version);
  } catch {
    return {
      ready: false,
      reason: whyNotServed(name, version, registry) ?? repository.problemOf(name) ?? "",
    };
  }
  const reason = await unreadyReason(model, log);
  return { ready: reason === undefined, reason: reason ?? "" };
}

/** Asks a version in service whether it is ready. */
export async function saysReady(model: ModelVersion, log: Log): Promise<boolean> {
  return (await unreadyReason(model, log)) === undefined;
}

/** Asks a version in service why it is not ready. A reason is also logged at verbose level 1. */
async function unreadyReason(
  { name, version, instances }: ModelVersion,
  log: Log,
): Promise<string | undefined> {
  try {
    await instances.checkReady();
    return undefined;
  } catch (error) {
    const { message } = TritonError.from(error);
    log.verbose(1, `Model '${name}' version ${version} is not ready: ${message}`);
    return message;
  }
}

/** Reasons of the versions that a name means; undefined if there are none. */
function whyNotServed(name: string, version: string, registry: ModelRegistry): string | undefined {
  const all = registry.versions(name).filter((one) => version === "" || one.version === Number(version));
  const reasons = all
    .filter(({ state }) => state !== "READY")
    .map((one) => ({ version: one.version, reason: one.reason || one.state.toLowerCase() }));
  if (reasons.length <= 1) return reasons[0]?.reason;
  return reasons.map((one) => `version ${one.version}: ${one.reason}`).join("; ");
}
