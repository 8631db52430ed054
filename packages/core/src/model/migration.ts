import { isDecoupled, type ModelConfig, TritonError } from "@tritonjs/protocol";
import type { InstanceGroup } from "../instance/instance-group.js";
import type { InferenceRequest } from "../request/inference-request.js";
import type { KnownLimits, Scheduler, SequenceCounts } from "../scheduler/scheduler.js";

/** Longest time for which requests wait for batches that began before a change, to keep the order of answers. */
export const MOST_HELD_MS = 10_000;

/**
 * Why a model cannot change to another configuration while it serves: callers and ensembles rely on the difference.
 * Undefined if it can.
 */
export function migrationObstacle(before: ModelConfig, after: ModelConfig): string | undefined {
  const differs = (name: string, a: unknown, b: unknown) =>
    JSON.stringify(a) === JSON.stringify(b) ? undefined : `${name}: expected ${shown(a)}, got ${shown(b)}`;
  return (
    differs("inputs", tensorsOf(before.input), tensorsOf(after.input)) ??
    differs("outputs", tensorsOf(before.output), tensorsOf(after.output)) ??
    differs("batching", before.maxBatchSize > 0, after.maxBatchSize > 0) ??
    differs("decoupled", isDecoupled(before), isDecoupled(after)) ??
    differs("sequences", before.sequenceBatching !== undefined, after.sequenceBatching !== undefined) ??
    differs(
      "iterative sequences",
      before.sequenceBatching?.iterativeSequence ?? false,
      after.sequenceBatching?.iterativeSequence ?? false,
    ) ??
    differs("ensemble", false, (before.ensembleScheduling ?? after.ensembleScheduling) !== undefined) ??
    differs("response cache", before.responseCache?.enable === true, after.responseCache?.enable === true)
  );
}

function tensorsOf(tensors: ModelConfig["input"] | ModelConfig["output"]): unknown {
  return tensors.map((tensor) => ({ ...tensor, labelFilename: undefined }));
}

function shown(value: unknown): string {
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}

/** True if the answers of a model come in the order of its requests, so that a change must not mix two generations. */
export function answersInOrder(config: ModelConfig, { serving }: InstanceGroup): boolean {
  if (config.sequenceBatching !== undefined || isDecoupled(config)) return false;
  if (config.dynamicBatching?.preserveOrdering === true) return true;
  return serving.length === 1 && (serving[0]!.executor.capacity ?? 1) === 1;
}

/**
 * Moves the requests that wait to another scheduler, in the order in which they came. They keep the time of their arrival,
 * and size limits of the new queue do not apply to them.
 *
 * @param inFlight requests that the model has accepted, oldest first
 * @param maxRows larger requests stay where they are
 */
export function moveWaiting(inFlight: readonly InferenceRequest[], to: Scheduler, maxRows: number): void {
  for (const request of inFlight) {
    const { holder } = request;
    if (request.executing || request.settled || holder?.isQueue !== true || request.rows > maxRows) continue;
    holder.remove(request);
    request.holder = undefined;
    request.gate?.leave();
    request.gate = undefined;
    request.extra = undefined;
    try {
      to.enqueue(request, true);
    } catch (error) {
      request.cancel(TritonError.from(error));
    }
  }
}

/**
 * The schedulers of a sequence model after changes: each sequence stays with the scheduler that has it, and new ones begin
 * in the newest.
 */
export class SequenceSuccession implements Scheduler {
  readonly #all: readonly Scheduler[];

  /** @param former schedulers of before, which still have sequences */
  constructor(
    readonly newest: Scheduler,
    former: readonly Scheduler[],
  ) {
    this.#all = [...former, newest];
  }

  enqueue(request: InferenceRequest): void {
    const owner = this.#all.find((one) => one.hasSequence?.(request)) ?? this.newest;
    owner.enqueue(request);
  }

  get queuedCount(): number {
    return this.#all.reduce((sum, { queuedCount }) => sum + queuedCount, 0);
  }

  get sequences(): SequenceCounts {
    const counts = this.#all.map(({ sequences }) => sequences ?? { inSlots: 0, inBacklog: 0 });
    return {
      inSlots: counts.reduce((sum, { inSlots }) => sum + inSlots, 0),
      inBacklog: counts.reduce((sum, { inBacklog }) => sum + inBacklog, 0),
    };
  }

  get limits(): KnownLimits | undefined {
    return this.newest.limits;
  }

  hasSequence(request: InferenceRequest): boolean {
    return this.#all.some((one) => one.hasSequence?.(request));
  }

  stop(): void {
    for (const one of this.#all) one.stop();
  }

  failQueued(error: TritonError): void {
    for (const one of this.#all) one.failQueued(error);
  }
}
