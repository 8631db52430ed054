import type { ObservedModel, ServerInspector } from "@tritonjs/core/frontend";
import { ModelSamples } from "./model-samples.js";
import { ProcessMeter, type ProcessUsage } from "./process-usage.js";

/** One look at the server, shared by all viewers. */
export interface Sample {
  /** Wall time in milliseconds since 1970. */
  readonly at: number;
  readonly models: readonly SampledModel[];
  readonly process: ProcessUsage;
}

/** A model version with its last minutes. */
export interface SampledModel {
  readonly model: ObservedModel;
  /** Undefined for a version that was never created. */
  readonly samples: ModelSamples | undefined;
}

/** Points of one model: five minutes at one a second. */
const MOST_POINTS = 300;

/** Points of a model on a server with many. */
const FEWEST_POINTS = 60;

/** Points of all models together, which bounds the memory: a point has about 130 bytes. */
const POINTS_OF_ALL = 60_000;

/**
 * Looks at the server once in an interval, for all viewers together. Without a viewer there is no timer, no watch of
 * latencies and no memory.
 */
export class Sampler {
  readonly #inspector: ServerInspector;
  readonly #intervalMs: number;
  readonly #viewers = new Set<(sample: Sample) => void>();
  #timer: NodeJS.Timeout | undefined;
  #endWatch = () => {};
  #meter: ProcessMeter | undefined;
  #samples = new Map<string, ModelSamples>();
  #last: Sample | undefined;

  constructor(inspector: ServerInspector, intervalMs: number) {
    this.#inspector = inspector;
    this.#intervalMs = intervalMs;
  }

  /** True while there is a viewer. */
  get running(): boolean {
    return this.#timer !== undefined;
  }

  /**
   * Adds a viewer, which gets a sample at once and then one in each interval.
   *
   * @returns function that removes the viewer
   */
  join(viewer: (sample: Sample) => void): () => void {
    this.#viewers.add(viewer);
    if (this.#timer === undefined) this.#start();
    viewer(this.#look(false));
    return () => {
      if (this.#viewers.delete(viewer) && this.#viewers.size === 0) this.#stop();
    };
  }

  #start(): void {
    this.#endWatch = this.#inspector.watchLatencies();
    this.#meter = new ProcessMeter();
    this.#look(true);
    // The server's sockets keep the process alive, not its viewers.
    this.#timer = setInterval(() => {
      const sample = this.#look(true);
      for (const viewer of [...this.#viewers]) viewer(sample);
    }, this.#intervalMs).unref();
  }

  #stop(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
    this.#endWatch();
    this.#meter = undefined;
    this.#last = undefined;
    this.#samples = new Map();
  }

  /** @param fresh false to return the last sample again, for a viewer that has just come */
  #look(fresh: boolean): Sample {
    if (!fresh && this.#last !== undefined) return this.#last;
    const at = Date.now();
    const models = this.#inspector.models();
    const kept = Math.max(
      FEWEST_POINTS,
      Math.min(MOST_POINTS, Math.floor(POINTS_OF_ALL / Math.max(1, models.length))),
    );
    const present = new Map<string, ModelSamples>();
    const sampled = models.map((model) => {
      if (model.counters === undefined) return { model, samples: undefined };
      const key = modelKey(model);
      const samples = this.#samples.get(key) ?? new ModelSamples();
      samples.add(at, model.counters, kept);
      present.set(key, samples);
      return { model, samples };
    });
    this.#samples = present;
    this.#last = { at, models: sampled, process: this.#meter!.look() };
    return this.#last;
  }
}

/** Identifies a version among those of all repositories. */
function modelKey({ namespace, name, version }: ObservedModel): string {
  return JSON.stringify([namespace, name, version]);
}
