import type { Payload } from "../../../batch/payload.js";
import { TritonError } from "../../../errors/triton-error.js";
import type { InstanceGroup } from "../../../instance/instance-group.js";
import type { ExecutionObserver } from "../../../instance/instance-group.js";
import type { ModelInstance } from "../../../instance/model-instance.js";
import type { InferenceRequest } from "../../../request/inference-request.js";
import type { PriorityQueue } from "../../priority-queue.js";
import type { BatchingRules } from "../form-batch.js";
import { expectedLatencyMs } from "./admission.js";
import { ArrivalRate } from "./arrival-rate.js";
import { type DurationFit, expectedMs, learnDuration } from "./duration-fit.js";
import { type AdaptiveRules, planBatch } from "./plan-batch.js";

/** Batches to have seen before anything is decided by them. */
const ENOUGH_OBSERVATIONS = 5;

interface Running {
  readonly rows: number;
  readonly startedAt: number;
  readonly payload: Payload;
}

export class AdaptiveBatching implements ExecutionObserver {
  readonly #rules: AdaptiveRules;
  readonly #instances: InstanceGroup;
  readonly #rate: ArrivalRate;
  readonly #fits = new Map<string, DurationFit>();
  readonly #running = new Map<ModelInstance, Running>();

  constructor(targetLatencyMs: number, maxBatchSize: number, instances: InstanceGroup) {
    this.#rules = { targetLatencyMs, maxBatchSize, instances: instances.instances.length };
    this.#instances = instances;
    this.#rate = new ArrivalRate(targetLatencyMs / 2);
    instances.observer = this;
  }

  started(instance: ModelInstance, payload: Payload, now: number): void {
    this.#running.set(instance, { rows: payload.batchSize, startedAt: now, payload });
  }

  ended(instance: ModelInstance, now: number): void {
    const { rows, startedAt, payload } = this.#running.get(instance)!;
    this.#running.delete(instance);
    for (const r of payload.requests)
      this.#count(
        now > Math.max(r.queueStart + this.#rules.targetLatencyMs, r.deadline ?? 0) ? "late" : "good",
      );
    const { kind } = instance.placement;
    this.#fits.set(kind, learnDuration(this.#fits.get(kind), rows, now - startedAt));
  }

  #patience = 1;
  #caution = 0;
  #count(what: "late" | "shed" | "good"): void {
    const B = +(process.env.MB ?? 0.002);
    const L = +(process.env.ML ?? 0.1);
    const CB = +(process.env.CB ?? 0.005);
    const CL = +(process.env.CL ?? 0.02);
    if (what === "late") this.#caution = Math.min(+(process.env.CM ?? 4), this.#caution + CL);
    else if (what === "good") this.#caution = Math.max(0, this.#caution - CL * CB);
    if (what === "late") this.#patience = Math.max(-1, this.#patience - L);
    else if (what === "shed")
      this.#patience = this.#patience > 0 ? Math.max(0, this.#patience - L) : this.#patience;
    else this.#patience = Math.min(1, this.#patience + L * B);
  }

  /** Notes a request that came; throws UNAVAILABLE when it could not be answered in time. */
  admit(request: InferenceRequest, queue: PriorityQueue, now: number): void {
    this.#rate.add(request.rows, now);
    const fit = this.#fitOf();
    if (fit === undefined) return;
    if (queue.size === 0 && this.#instances.idleInstances > 0) return;
    const idleInMs = this.#idleInMs(now);
    if (idleInMs.length === 0) return;
    const expected = expectedLatencyMs(
      {
        rowsAhead: queue.rows,
        rows: request.rows,
        idleInMs,
        curve: fit,
        arrivalRate: this.#rate.rowsPerMs(now),
        caution: this.#caution,
      },
      this.#rules,
    );
    const allowed = request.deadline === undefined ? this.#rules.targetLatencyMs : request.deadline - now;
    if (expected <= allowed) return;
    this.#count("shed");
    throw new TritonError("UNAVAILABLE", `${request.logPrefix}cannot be answered within ${allowed} ms`);
  }

  rules(queue: PriorityQueue, rules: BatchingRules, now: number): BatchingRules {
    const fit = this.#fitOf();
    if (fit === undefined) return rules;
    let answerBy = Number.POSITIVE_INFINITY;
    let oldest = Number.POSITIVE_INFINITY;
    let rows = 0;
    for (let r = queue.head; r !== undefined && rows < this.#rules.maxBatchSize; r = queue.after(r)) {
      const start = r.batcherStart ?? r.queueStart;
      oldest = Math.min(oldest, start);
      answerBy = Math.min(
        answerBy,
        start + this.#rules.targetLatencyMs,
        r.deadline ?? Number.POSITIVE_INFINITY,
      );
      rows += r.rows;
    }
    const idle = this.#idleInMs(now);
    const plan = planBatch(
      {
        rows,
        answerBy,
        arrivalRate: this.#rate.rowsPerMs(now),
        dispersion: this.#rate.dispersion,
        patience: Math.max(0, this.#patience),
        nextIdleMs: idle[1] ?? Number.POSITIVE_INFINITY,
        curve: fit,
      },
      now,
      this.#rules,
    );
    const wait = plan.startAt > now;
    return {
      ...rules,
      maxBatchSize: plan.maxRows,
      preferredBatchSizes: [wait ? plan.enoughRows : plan.maxRows],
      maxQueueDelayMs: wait ? plan.startAt - oldest : 0,
    };
  }

  #fitOf(): DurationFit | undefined {
    for (const fit of this.#fits.values()) return fit.observations < ENOUGH_OBSERVATIONS ? undefined : fit;
    return undefined;
  }

  #idleInMs(now: number): number[] {
    const list: number[] = [];
    for (const instance of this.#instances.instances) {
      if (!instance.healthy) continue;
      const running = this.#running.get(instance);
      const fit = this.#fits.get(instance.placement.kind);
      list.push(
        running === undefined || fit === undefined
          ? 0
          : remaining(expectedMs(fit, running.rows), now - running.startedAt),
      );
    }
    return list.sort((a, b) => a - b);
  }
}

function remaining(expected: number, elapsed: number): number {
  return Math.max(expected - elapsed, +(process.env.OV ?? 0.02) * elapsed);
}
