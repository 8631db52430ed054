import type { ReadHeaders } from "@tritonjs/core/internal/server";
import {
  getOrAdd,
  type LogSettings,
  type ModelRegistry,
  ModelVersion,
  type RegisteredVersion,
} from "@tritonjs/core/internal/server";
import type { ModelConfig } from "@tritonjs/protocol";
import type { WatchedRegion } from "../shared-memory/shared-memory.js";

/** A version of a model, as a copy of the service in another thread knows it. All of it can be cloned. */
export interface WatchedVersion extends RegisteredVersion {
  /** Differs for each version that was ever loaded, also for two of the same number. */
  readonly key: number;
  /** True if a model of an instance reports its own readiness. */
  readonly reportsReadiness: boolean;
  /** Undefined for a version without a configuration, which was never READY. */
  readonly config: ModelConfig | undefined;
  /** Headers of clients that its scheduler looks at. */
  readonly reads: ReadHeaders | undefined;
  readonly labels: ReadonlyMap<string, readonly string[]>;
  /** Directory of the model, which has a directory for each version. */
  readonly directory: string | undefined;
}

/** The versions of one name and namespace; none for a name that is no longer known. */
export interface WatchedModel {
  readonly name: string;
  readonly namespace: string;
  readonly versions: readonly WatchedVersion[] | undefined;
  /** Set while requests without a version are divided among several. */
  readonly router: WatchedRouter | undefined;
}

/** How requests to a model that name no version are treated. */
export interface WatchedRouter {
  readonly version: number;
  readonly keyHeader: string | undefined;
}

/** State of the server besides its models. */
export interface WatchedServer {
  readonly live: boolean;
  readonly ready: boolean;
  /** False while all requests are refused. */
  readonly open: boolean;
  readonly log: LogSettings;
  /** True if requests of any model may be traced. */
  readonly traces: boolean;
}

/** The changes since the last call: the whole state in the first call. */
export interface ServiceChange {
  readonly server: WatchedServer | undefined;
  readonly models: readonly WatchedModel[];
  /** All regions of shared memory; undefined if they are the same. */
  readonly regions: readonly WatchedRegion[] | undefined;
}

/** The state that a {@link ServiceWatch} looks at. */
export interface WatchSource {
  readonly registry: ModelRegistry;
  server(): WatchedServer;
  regions(): readonly WatchedRegion[];
}

const NO_LABELS: ReadonlyMap<string, readonly string[]> = new Map();

/** Finds out what has changed in a service since the last look. */
export class ServiceWatch {
  readonly #source: WatchSource;
  readonly #models = new Map<string, WatchedModel>();
  readonly #keys = new WeakMap<RegisteredVersion, number>();
  #lastKey = 0;
  #server: WatchedServer | undefined;
  #regions: readonly WatchedRegion[] = [];

  constructor(source: WatchSource) {
    this.#source = source;
  }

  /** Returns what has changed; undefined for nothing. */
  look(): ServiceChange | undefined {
    const server = this.#source.server();
    const isSame = this.#server !== undefined && JSON.stringify(this.#server) === JSON.stringify(server);
    const regions = this.#source.regions();
    const sameRegions = this.#server !== undefined && regions === this.#regions;
    const models = this.#changedModels();
    if (isSame && sameRegions && models.length === 0) return undefined;
    this.#server = server;
    this.#regions = regions;
    return {
      server: isSame ? undefined : server,
      models,
      regions: sameRegions ? undefined : regions,
    };
  }

  #changedModels(): WatchedModel[] {
    const changed: WatchedModel[] = [];
    const present = new Set<string>();
    for (const [name, namespace, versions] of this.#source.registry.spaces()) {
      const id = `${name}\0${namespace}`;
      present.add(id);
      const known = this.#models.get(id);
      const router = this.#source.registry.routerOf(name, namespace);
      const sameRouter =
        router?.version === known?.router?.version && router?.keyHeader === known?.router?.keyHeader;
      if (known !== undefined && sameRouter && this.#isCurrent(known, versions)) continue;
      const watched = {
        name,
        namespace,
        versions: [...versions.values()].map((one) => this.#watched(one)),
        router: router && { version: router.version, keyHeader: router.keyHeader },
      };
      this.#models.set(id, watched);
      changed.push(watched);
    }
    for (const [id, { name, namespace }] of this.#models) {
      if (present.has(id)) continue;
      this.#models.delete(id);
      changed.push({ name, namespace, versions: undefined, router: undefined });
    }
    return changed;
  }

  #isCurrent(known: WatchedModel, versions: ReadonlyMap<number, RegisteredVersion>): boolean {
    if (known.versions?.length !== versions.size) return false;
    return known.versions.every((one) => {
      const now = versions.get(one.version);
      return (
        now !== undefined &&
        this.#keys.get(now) === one.key &&
        now.state === one.state &&
        now.reason === one.reason &&
        configOf(now) === one.config
      );
    });
  }

  #watched(version: RegisteredVersion): WatchedVersion {
    const key = getOrAdd(this.#keys, version, () => ++this.#lastKey);
    const { name, namespace, version: number, state, reason, isEnsemble } = version;
    const model = version instanceof ModelVersion ? version : undefined;
    return {
      name,
      namespace,
      version: number,
      state,
      reason,
      isEnsemble,
      key,
      reportsReadiness: model?.instances.reportsReadiness ?? false,
      config: model?.config,
      reads: model?.reads,
      labels: model?.labels ?? NO_LABELS,
      directory: model?.directory,
    };
  }
}

function configOf(version: RegisteredVersion): ModelConfig | undefined {
  return version instanceof ModelVersion ? version.config : undefined;
}
