import { isDeepStrictEqual } from "node:util";
import type { ModelConfig } from "@tritonjs/protocol";

/**
 * Whether a changed configuration requires a reload of the model. Instance groups can be changed while it serves, and
 * the version policy only selects the versions that serve.
 */
export function needsReload(before: ModelConfig, after: ModelConfig): boolean {
  return !isDeepStrictEqual(withoutPlacement(before), withoutPlacement(after));
}

function withoutPlacement({ instanceGroup: _, versionPolicy: __, ...rest }: ModelConfig) {
  return rest;
}
