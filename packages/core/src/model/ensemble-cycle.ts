import type { ModelConfig } from "@tritonjs/protocol";
import type { MemberOf } from "./ensemble-members.js";

/**
 * Finds the path from an ensemble over its members back to itself, which requests would follow forever; undefined if
 * there is none.
 *
 * @param memberOf looks members up, and the ensemble itself too
 */
export function ensembleCycle(config: ModelConfig, memberOf: MemberOf): readonly string[] | undefined {
  const seen = new Set<ModelConfig>();
  const search = (from: ModelConfig, path: readonly string[]): readonly string[] | undefined => {
    for (const step of from.ensembleScheduling?.step ?? []) {
      const member = memberOf(step)?.config;
      if (member === config) return [...path, member.name];
      if (member === undefined || seen.has(member)) continue;
      seen.add(member);
      const found = search(member, [...path, member.name]);
      if (found !== undefined) return found;
    }
    return undefined;
  };
  return search(config, [config.name]);
}
