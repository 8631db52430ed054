import type { ExecutableRequest } from "@tritonjs/core/backend";
import type { Parameters } from "@tritonjs/protocol";

/**
 * Groups the requests of a batch that one call can carry: those with the same parameters, which apply to a whole call.
 *
 * @returns positions of the requests, group by group
 */
export function groupByParameters(requests: readonly ExecutableRequest[]): readonly (readonly number[])[] {
  const groups = new Map<string, number[]>();
  for (const [i, request] of requests.entries()) {
    // A null request fills a slot of a sequence batch, and has no parameters of its own.
    const key = request.ready ? keyOf(request.parameters) : "";
    const group = groups.get(key);
    if (group === undefined) groups.set(key, [i]);
    else group.push(i);
  }
  return [...groups.values()];
}

function keyOf(parameters: Parameters): string {
  const entries = Object.entries(parameters);
  if (entries.length === 0) return "";
  entries.sort(([one], [other]) => (one < other ? -1 : 1));
  return JSON.stringify(entries, (_, value) => (typeof value === "bigint" ? `${value}n` : value));
}
