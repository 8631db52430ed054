import type { InferenceService, ServiceChange, WatchedModel, WatchedVersion } from "@tritonjs/core/frontend";
import { type ModelConfig, TritonError } from "@tritonjs/protocol";

/** Number of versions out of service that are still known, for requests that were on their way. */
const MAX_RETIRED = 256;

/** A version that requests can be decoded for. */
type KnownVersion = WatchedVersion & { readonly config: ModelConfig };

/** The state of a service that its threads copy, kept for threads that start later. */
export class ServiceState {
  readonly #models = new Map<string, WatchedModel>();
  readonly #versions = new Map<number, KnownVersion>();
  readonly #retired: number[] = [];
  #server: ServiceChange["server"];
  #regions: ServiceChange["regions"];
  readonly #stop: () => void;

  /**
   * @param onChange called with each change, at once
   * @throws TritonError INVALID_ARG for a service that cannot be copied
   */
  constructor(service: InferenceService, onChange: (change: ServiceChange) => void) {
    if (service.watch === undefined) {
      throw new TritonError("INVALID_ARG", "frontend threads need the service of a Triton, got another one", {
        reason: "INVALID_OPTION",
      });
    }
    this.#stop = service.watch((change) => {
      this.#keep(change);
      onChange(change);
    });
  }

  /** Finds a version by its key, also shortly after it was replaced. */
  get(key: number): KnownVersion | undefined {
    return this.#versions.get(key);
  }

  /** The whole state. */
  snapshot(): ServiceChange {
    return { server: this.#server, models: [...this.#models.values()], regions: this.#regions };
  }

  close(): void {
    this.#stop();
  }

  #keep({ server, models, regions }: ServiceChange): void {
    this.#server = server ?? this.#server;
    this.#regions = regions ?? this.#regions;
    for (const model of models) {
      const id = `${model.name}\0${model.namespace}`;
      const gone = new Set(this.#models.get(id)?.versions?.map(({ key }) => key));
      for (const version of model.versions ?? []) {
        gone.delete(version.key);
        if (version.config !== undefined) this.#versions.set(version.key, version as KnownVersion);
      }
      for (const key of gone) this.#retire(key);
      if (model.versions === undefined) this.#models.delete(id);
      else this.#models.set(id, model);
    }
  }

  #retire(key: number): void {
    this.#retired.push(key);
    if (this.#retired.length > MAX_RETIRED) this.#versions.delete(this.#retired.shift()!);
  }
}
