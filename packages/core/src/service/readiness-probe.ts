import { TritonError } from "@tritonjs/protocol";
import type { ModelVersion } from "../model/model-version.js";
import type { Log } from "../observe/log/log.js";

/** Asks a version in service whether it is ready. If it is not, the reason is logged at verbose level 1. */
export async function saysReady({ name, version, instances }: ModelVersion, log: Log): Promise<boolean> {
  try {
    await instances.checkReady();
    return true;
  } catch (error) {
    log.verbose(1, `Model '${name}' version ${version} is not ready: ${TritonError.from(error).message}`);
    return false;
  }
}
