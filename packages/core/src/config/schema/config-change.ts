import { isDeepStrictEqual } from "node:util";
import type { ModelConfig } from "@tritonjs/protocol";

/**
 * Whether a model has to be loaded anew for another configuration: instance groups can be changed while it serves,
 * and the version policy says only which versions serve.
 */
export function needsReload(before: ModelConfig, after: ModelConfig): boolean {
  return !isDeepStrictEqual(withoutPlacement(before), withoutPlacement(after));
}

function withoutPlacement({ instanceGroup: _, versionPolicy: __, ...rest }: ModelConfig) {
  return rest;
}
