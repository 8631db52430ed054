import { type ModelConfig, TritonError } from "@tritonjs/protocol";
import type { Clock } from "../clock/clock.js";
import { instanceSignature, type PlannedInstance, planInstances } from "../config/placement/instances.js";

import { InstanceGroup } from "../instance/instance-group.js";
import type { ModelInstance } from "../instance/model-instance.js";
import type { RateLimiter } from "../instance/rate-limiter/rate-limiter.js";
import type { ModelFaults } from "./model-faults.js";

/** Makes an instance of a model of this configuration: one of `count`. */
export type MakeInstance = (planned: PlannedInstance, config: ModelConfig, count: number) => ModelInstance;

/** The parts of a model version that its instances use. */
export interface LiveInstancesContext {
  readonly rateLimiter?: RateLimiter | undefined;
  readonly faults: ModelFaults;
}

/** Result of a change of instance groups. */
export interface InstanceUpdate {
  /** Resolves when the removed instances are released. */
  readonly removed: Promise<void>;
}

/** Milliseconds that a worn instance keeps working after a failed replacement, before the next attempt. */
const RETRY_REPLACEMENT_MS = 30_000;

/**
 * The instances of a model version while it serves. Their number may change, and worn ones are replaced. New instances
 * are loaded and warm before old ones get no more requests. Old instances end when their work is done.
 */
export class LiveInstances {
  readonly group: InstanceGroup;
  readonly #clock: Clock;
  readonly #make: MakeInstance;
  readonly #faults: ModelFaults;
  #config: ModelConfig;
  /** The last change; changes are made one at a time. */
  #changes: Promise<unknown> = Promise.resolve();
  #leaving = new Set<ModelInstance>();
  /** Warms an instance up; set by the owner. */
  warmUp: (instance: ModelInstance) => Promise<void> = async () => {};

  constructor(config: ModelConfig, clock: Clock, make: MakeInstance, context: LiveInstancesContext) {
    this.#config = config;
    this.#clock = clock;
    this.#make = make;
    this.#faults = context.faults;
    const planned = planInstances(config);
    this.group = new InstanceGroup(
      planned.map((one) => make(one, config, planned.length)),
      clock,
      context.rateLimiter,
    );
    this.group.onWorn = (instance) => this.#replaceLater(instance);
  }

  /** The model's configuration with its present instance groups. */
  get config(): ModelConfig {
    return this.#config;
  }

  /** Loads all instances and warms them up. */
  async start(): Promise<void> {
    await this.group.start();
    for (const instance of this.group.serving) await this.warmUp(instance);
  }

  /**
   * Changes to the instance groups of another configuration, which must be equal in everything else. Instances that it
   * can use stay. Resolves when the new ones are ready. Surplus instances end when their work is done.
   *
   * @returns promise of the release of surplus instances; those of a sequence model keep their sequences and are not
   * waited for
   * @throws TritonError of an instance that cannot be loaded: then nothing has changed
   */
  update(config: ModelConfig): Promise<InstanceUpdate> {
    return this.#next(async () => {
      const free = this.group.instances.filter((instance) => !this.#leaving.has(instance));
      const planned = planInstances(config);
      const missing: PlannedInstance[] = [];
      for (const one of planned) {
        const signature = instanceSignature(one);
        const known = free.findIndex(({ placement }) => instanceSignature(placement) === signature);
        if (known < 0) missing.push(one);
        else free.splice(known, 1);
      }
      const made = missing.map((one) => this.#make(one, config, planned.length));
      const results = await Promise.allSettled(made.map((instance) => this.#load(instance)));
      const failed = results.find((result) => result.status === "rejected");
      if (failed !== undefined) {
        await Promise.all(made.map((instance) => this.group.loader.release(instance)));
        throw TritonError.from(failed.reason);
      }
      this.#config = config;
      for (const instance of made) this.group.join(instance);
      const retired = free.map((instance) => this.#retire(instance));
      const removed = config.sequenceBatching === undefined ? retired : [];
      return { removed: Promise.all(removed).then(() => {}) };
    });
  }

  #replaceLater(worn: ModelInstance): void {
    worn.beingReplaced = true;
    void this.#next(() => this.#replace(worn)).catch((error) => {
      this.#faults.replacementFailed(worn.placement.name, error);
      worn.staysUntil = this.#clock.now() + RETRY_REPLACEMENT_MS;
      worn.beingReplaced = false;
    });
  }

  async #replace(worn: ModelInstance): Promise<void> {
    const isGone = () =>
      this.group.loader.stopped || !this.group.instances.includes(worn) || this.#leaving.has(worn);
    if (isGone()) return;
    const fresh = this.#make(worn.placement, this.#config, this.group.instances.length);
    try {
      await this.#load(fresh);
    } catch (error) {
      await this.group.loader.release(fresh);
      if (this.group.loader.stopped) return;
      throw error;
    }
    this.group.join(fresh, worn);
    void this.#retire(worn);
  }

  async #load(instance: ModelInstance): Promise<void> {
    await this.group.loader.load(instance);
    if (!instance.passive) await this.warmUp(instance);
    if (this.group.loader.stopped)
      throw new TritonError("UNAVAILABLE", "the model was stopped while its instances changed", {
        reason: "MODEL_STOPPED",
      });
  }

  #retire(instance: ModelInstance): Promise<void> {
    this.#leaving.add(instance);
    return this.group.retire(instance).finally(() => this.#leaving.delete(instance));
  }

  #next<T>(change: () => Promise<T>): Promise<T> {
    const done = this.#changes.then(change);
    this.#changes = done.catch(() => {});
    return done;
  }
}
