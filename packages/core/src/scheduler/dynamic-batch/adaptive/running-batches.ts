import type { Payload } from "../../../batch/payload.js";
import type { InstanceGroup } from "../../../instance/instance-group.js";
import type { ModelInstance } from "../../../instance/model-instance.js";
import { type DurationCurve, type DurationFit, expectedMs, learnDuration } from "./duration-curve.js";

/** Number of observed batches of a kind of instance before its durations are predicted. */
const ENOUGH_OBSERVATIONS = 5;
/** A batch that exceeds its expected time counts as nearly done: this share of its time is left. */
const OVERRUN_LEFT = 0.02;

interface Running {
  readonly instance: ModelInstance;
  readonly rows: number;
  readonly startedAt: number;
}

/** Forecast of when the instances are idle, and of the duration of the next batch. */
export interface InstanceOutlook {
  /** Milliseconds until each instance is idle, ascending. */
  readonly idleInMs: readonly number[];
  /** Curve of the instance that is idle first. */
  readonly curve: DurationCurve;
}

/** Tracks the running batches, and learns a curve for each kind of instance from earlier ones. */
export class RunningBatches {
  readonly #instances: InstanceGroup;
  readonly #fits = new Map<string, DurationFit>();
  readonly #running = new Map<Payload, Running>();

  constructor(instances: InstanceGroup) {
    this.#instances = instances;
  }

  start(instance: ModelInstance, payload: Payload, now: number): void {
    this.#running.set(payload, { instance, rows: payload.batchSize, startedAt: now });
  }

  end(payload: Payload, now: number): void {
    const running = this.#running.get(payload);
    if (running === undefined) return;
    this.#running.delete(payload);
    const { kind } = running.instance.placement;
    this.#fits.set(kind, learnDuration(this.#fits.get(kind), running.rows, now - running.startedAt));
  }

  /** The forecast; undefined while too little is known, or no instance is healthy. */
  outlook(now: number): InstanceOutlook | undefined {
    const idle: { readonly inMs: number; readonly fit: DurationFit | undefined }[] = [];
    for (const instance of this.#instances.serving) {
      if (!instance.healthy) continue;
      idle.push({ inMs: this.#idleIn(instance, now), fit: this.#fits.get(instance.placement.kind) });
    }
    idle.sort((a, b) => a.inMs - b.inMs);
    const curve = idle[0]?.fit;
    if (curve === undefined || curve.observations < ENOUGH_OBSERVATIONS) return undefined;
    return { idleInMs: idle.map(({ inMs }) => inMs), curve };
  }

  #idleIn(instance: ModelInstance, now: number): number {
    if (instance.room > 0) return 0;
    const fit = this.#fits.get(instance.placement.kind);
    let soonest = Number.POSITIVE_INFINITY;
    for (const payload of instance.atWork) {
      const running = this.#running.get(payload);
      if (running === undefined || fit === undefined) continue;
      const elapsed = now - running.startedAt;
      soonest = Math.min(soonest, Math.max(expectedMs(fit, running.rows) - elapsed, OVERRUN_LEFT * elapsed));
    }
    return soonest === Number.POSITIVE_INFINITY ? 0 : soonest;
  }
}
