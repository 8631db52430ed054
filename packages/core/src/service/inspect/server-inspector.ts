import { ModelVersion } from "../../model/model-version.js";
import type { ModelRegistry } from "../../model/registry.js";
import type { CacheUsage } from "../../observe/cache-metrics.js";
import { LatencyWatch } from "../../observe/latency/latency-watch.js";
import type { ModelControlMode } from "../../repository/repository-options.js";
import { activityOf, countersOf } from "./inspect-model.js";
import type { ObservedModel } from "./observed-model.js";

/** The parts of the server that an inspector reads. */
export interface ObservedServer {
  readonly registry: ModelRegistry;
  readonly modelControlMode: ModelControlMode;
  readonly cacheUsage: () => CacheUsage | undefined;
  readonly changeInstances: (model: ModelVersion, count: number) => Promise<void>;
}

/** What an operator may see and change besides the operations of the protocol. It only reads, and costs when asked. */
export class ServerInspector {
  readonly #server: ObservedServer;
  #watches = 0;

  constructor(server: ObservedServer) {
    this.#server = server;
  }

  /** Whether clients may load and unload models: only with `explicit`. */
  get modelControlMode(): ModelControlMode {
    return this.#server.modelControlMode;
  }

  /** Usage of the response cache; undefined without a cache, or if the cache does not report its usage. */
  get cacheUsage(): CacheUsage | undefined {
    return this.#server.cacheUsage();
  }

  /** All versions of all models, ordered by name and then by version. */
  models(): ObservedModel[] {
    return this.#server.registry.all().map((version) => {
      const { name, namespace, state, reason, isEnsemble } = version;
      const model = version instanceof ModelVersion ? version : undefined;
      if (model !== undefined && this.#watches > 0) {
        model.statistics.watch ??= new LatencyWatch();
        model.statistics.watch.looked();
      }
      return {
        name,
        namespace,
        version: version.version,
        state,
        reason,
        isEnsemble,
        bound: model !== undefined && model.directory === undefined,
        counters: model && countersOf(model),
        activity: model && (() => activityOf(model)),
      };
    });
  }

  /**
   * Counts the latencies of all models, from the next {@link models} on, until the returned function is called. Without
   * a watch, latencies cost nothing.
   */
  watchLatencies(): () => void {
    this.#watches++;
    let isOver = false;
    return () => {
      if (isOver) return;
      isOver = true;
      if (--this.#watches > 0) return;
      for (const { statistics } of this.#server.registry.models()) statistics.watch = undefined;
    };
  }

  /**
   * Changes the number of instances of a model's first group, while the model serves.
   *
   * @param version version in decimal digits; empty for the highest that is ready
   * @throws TritonError NOT_FOUND for an unknown model, INVALID_ARG for an impossible number, UNAVAILABLE unless the
   * model is ready, and errors from loading an instance. After an error nothing has changed.
   */
  async changeInstances(name: string, version: string, count: number): Promise<void> {
    await this.#server.changeInstances(this.#server.registry.find(name, version), count);
  }
}
