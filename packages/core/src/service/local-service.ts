import type { ModelConfig } from "../config/model-config.js";
import { type ModelMetadata, modelMetadata } from "../config/model-metadata.js";
import { TritonError } from "../errors/triton-error.js";
import type { ModelVersion } from "../model/model-version.js";
import type { ModelRegistry } from "../model/registry.js";
import { parseVersion } from "../model/registry.js";
import type { Log } from "../observe/log/log.js";
import { metricsPage } from "../observe/metrics.js";
import type { InferenceRequest } from "../request/inference-request.js";
import type { InferenceService, ModelIndexEntry, ReadyModel, ServerMetadata } from "./inference-service.js";
import { SERVER_EXTENSIONS } from "./server-extensions.js";
import { type ModelStatisticsReport, reportStatistics } from "./statistics-report.js";

/** What the service says about itself. */
export interface ServerIdentity {
  readonly id: string;
  readonly version: string;
}

/** The v2 operations over the models of this process. */
export class LocalService implements InferenceService {
  /** Set while the server stops: it is no longer ready, and refuses new requests. */
  stopping = false;
  readonly log: Log;
  readonly #registry: ModelRegistry;
  readonly #identity: ServerIdentity;

  constructor(registry: ModelRegistry, identity: ServerIdentity, log: Log) {
    this.log = log;
    this.#registry = registry;
    this.#identity = identity;
  }

  isLive(): boolean {
    return true;
  }

  isReady(): boolean {
    return (
      !this.stopping &&
      this.#registry.all().every((model) => model.state === "READY" || model.reason === "unloaded")
    );
  }

  serverMetadata(): ServerMetadata {
    return { name: this.#identity.id, version: this.#identity.version, extensions: SERVER_EXTENSIONS };
  }

  isModelReady(name: string, version: string): boolean {
    parseVersion(version);
    try {
      this.#registry.find(name, version);
      return !this.stopping;
    } catch {
      return false;
    }
  }

  model(name: string, version: string): ReadyModel {
    const model = this.#find(name, version);
    return { name: model.name, version: model.version, config: model.config, labels: model.labels };
  }

  modelMetadata(name: string, version: string): ModelMetadata {
    const model = this.#find(name, version);
    const versions = version === "" ? this.#readyVersions(name) : [model.version];
    return modelMetadata(model.config, versions);
  }

  modelConfig(name: string, version: string): ModelConfig {
    return this.#find(name, version).config;
  }

  statistics(name: string, version: string): ModelStatisticsReport[] {
    const ready = (name === "" ? this.#registry.all() : this.#registry.versions(name)).filter(
      (model) => model.state === "READY",
    );
    const wanted = parseVersion(version);
    const chosen = wanted === undefined ? ready : ready.filter((model) => BigInt(model.version) === wanted);
    if (name !== "" && this.#registry.versions(name).length === 0) {
      throw new TritonError("INVALID_ARG", `requested model '${name}' is not available`);
    }
    if (name !== "" && chosen.length === 0) {
      throw new TritonError("INVALID_ARG", `requested model version is not available for model '${name}'`);
    }
    return chosen.map((model) => reportStatistics(model.name, model.version, model.statistics));
  }

  repositoryIndex(onlyReady: boolean): ModelIndexEntry[] {
    return this.#registry
      .all()
      .filter((model) => !onlyReady || model.state === "READY")
      .map(({ name, version, state, reason }) => ({
        name,
        version: String(version),
        state,
        ...(reason === "" ? {} : { reason }),
      }));
  }

  infer(request: InferenceRequest): void {
    this.#find(request.modelName, request.modelVersion).infer(request);
  }

  metrics(): Promise<string> {
    return metricsPage(
      this.#registry
        .all()
        .filter((model) => model.state === "READY")
        .map(({ name, version, config, statistics }) => ({
          labels: labelsOf(name, version, config),
          cached: config.responseCache?.enable === true,
          statistics,
        })),
    );
  }

  #find(name: string, version: string): ModelVersion {
    if (this.stopping) throw new TritonError("UNAVAILABLE", "Server not ready");
    return this.#registry.find(name, version);
  }

  #readyVersions(name: string): number[] {
    return this.#registry
      .versions(name)
      .filter((model) => model.state === "READY")
      .map((model) => model.version);
  }
}

/** Labels of a model's metrics; its metric tags have a leading underscore. */
function labelsOf(name: string, version: number, config: ModelConfig): Record<string, string> {
  const tags = Object.entries(config.metricTags).map(([key, value]) => [`_${key}`, value]);
  return { ...Object.fromEntries(tags), model: name, version: String(version) };
}
