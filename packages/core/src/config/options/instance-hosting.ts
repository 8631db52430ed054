import type { InstanceHosting, Isolation, RecycleOptions } from "@tritonjs/protocol";

import { keyList } from "../schema/key-list.js";

export const ISOLATIONS = keyList<Record<Isolation, unknown>>({ inline: true, worker: true, process: true });

/** Names of the options. */
export const HOSTING_OPTION_KEYS = keyList<InstanceHosting>({
  isolation: true,
  heapLimitMb: true,
  executionTimeoutMs: true,
  abandonedTimeoutMs: true,
  recycle: true,
});

/** Limits with which a worker or process is started. */
export interface InstanceLimits {
  readonly heapLimitMb?: number | undefined;
  /** Priority of a process, from -20 to 19. Above 0 it is lower than that of other processes. */
  readonly nice?: number | undefined;
}

/** Names of the options of recycling. */
export const RECYCLE_OPTION_KEYS = keyList<RecycleOptions>({ afterRequests: true, aboveMemoryMb: true });

/** Lists problems with the hosting of a group, given its possible isolations. `where` names the group in the texts. */
export function hostingProblems(
  where: string,
  hosting: InstanceHosting,
  possible: readonly Isolation[],
  isNative: boolean,
): string[] {
  const { isolation = possible[0]!, heapLimitMb, executionTimeoutMs, abandonedTimeoutMs, recycle } = hosting;
  if (!ISOLATIONS.includes(isolation)) {
    return [`${where}.isolation: expected one of ${ISOLATIONS.join(", ")}, got '${String(isolation)}'`];
  }
  const problems: string[] = [];
  if (!possible.includes(isolation)) {
    problems.push(
      `${where}.isolation: expected ${possible.join(" or ")}, which this model can run in, got '${isolation}'`,
    );
  }
  const { afterRequests, aboveMemoryMb } = recycle ?? {};
  const numbers = { heapLimitMb, executionTimeoutMs, abandonedTimeoutMs, afterRequests, aboveMemoryMb };
  for (const [name, value] of Object.entries(numbers)) {
    if (value === undefined) continue;
    if (!(Number.isFinite(value) && value > 0)) {
      problems.push(`${where}.${name}: expected a number above 0, got ${String(value)}`);
    }
    if (isolation === "inline") {
      problems.push(
        `${where}.${name} needs isolation 'worker' or 'process': an inline instance cannot be ended`,
      );
    }
  }
  for (const name of ["executionTimeoutMs", "abandonedTimeoutMs"] as const) {
    if (isNative && isolation === "worker" && hosting[name] !== undefined) {
      problems.push(`${where}.${name} needs isolation 'process': native code in a thread cannot be ended`);
    }
  }
  return problems;
}
