import { keyList } from "./key-list.js";
/**
 * Where an instance runs: on the thread of whoever bound the model, in a worker thread, or in a child process.
 *
 * | | a closure | a module | a model file |
 * |---|---|---|---|
 * | `inline` | always | may | never |
 * | `worker` | | by default | by default |
 * | `process` | | may | may |
 */
export type Isolation = "inline" | "worker" | "process";

export const ISOLATIONS = keyList<Record<Isolation, unknown>>({ inline: true, worker: true, process: true });

/** When an instance is replaced by a new one, which starts first. */
export interface RecycleOptions {
  /** After so many requests. */
  readonly afterRequests?: number;
  /**
   * When it holds more than so many megabytes after a batch: a process all of its memory, a worker thread its heap,
   * what has not been collected yet included.
   */
  readonly aboveMemoryMb?: number;
}

/** What bounds an instance, beyond Triton's instance group. */
export interface InstanceHosting {
  /** @default "inline" for functions, "worker" for modules and model files */
  readonly isolation?: Isolation;
  /** Megabytes of JavaScript heap; one that needs more ends. Not for `inline`. @default that of Node */
  readonly heapLimitMb?: number;
  /**
   * Milliseconds that a batch may run. Then the instance is ended and started again, and the batch fails with
   * UNAVAILABLE. Not for `inline`, and for model files only with `process`. @default any time
   */
  readonly executionTimeoutMs?: number;
  /** The same for a batch whose requests have all been given up, from then on. @default any time */
  readonly abandonedTimeoutMs?: number;
  readonly recycle?: RecycleOptions;
}

/** Names of the options. */
export const HOSTING_OPTION_KEYS = keyList<InstanceHosting>({
  isolation: true,
  heapLimitMb: true,
  executionTimeoutMs: true,
  abandonedTimeoutMs: true,
  recycle: true,
});

/** What a place is started with. */
export interface InstanceLimits {
  readonly heapLimitMb?: number | undefined;
  /** Priority of a process, from -20 to 19; above 0 for less than others. */
  readonly nice?: number | undefined;
}

/** Names of the options of recycling. */
export const RECYCLE_OPTION_KEYS = keyList<RecycleOptions>({ afterRequests: true, aboveMemoryMb: true });

/** What is wrong with the hosting of a group, given where it may run; `where` names it. */
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
