import {
  errorFor,
  type ModelConfig,
  type ModelIndexEntry,
  type ModelMetadata,
  type ModelStatisticsReport,
  type ServerMetadata,
} from "@tritonjs/protocol";
import type { Gpus } from "../config/gpus.js";
import { modelMetadata } from "../config/model-metadata.js";
import type { ManagementOperation, ManagementRoute } from "../extension/extension.js";
import type { LoadParameters, ModelSource, UnloadParameters } from "../extension/model-source.js";
import type { ModelVersion } from "../model/model-version.js";
import { parseVersion } from "../model/pick-version.js";
import type { ModelRegistry } from "../model/registry.js";
import type { QueueSnapshot, RegisteredVersion } from "../model/version-status.js";
import type { Log } from "../observe/log.js";
import { applyMetricChange } from "../observe/metric-families.js";
import type { MetricsPage, MetricsText } from "../observe/metrics-page.js";
import type { Tracing } from "../observe/tracing.js";
import type { RepositoryOptions } from "../repository/repository-options.js";
import type { RequestMemory } from "../request/request-memory.js";
import { SharedMemory } from "../shared-memory/shared-memory.js";
import { realClock } from "../system/clock.js";
import { VERSION } from "../version.js";
import type { AllowedHosts, Authentication, Restrictions } from "./access-control.js";
import type { InferenceService, MountedFrontend } from "./inference-service.js";
import {
  type LoadReport,
  loadReportOf,
  type ModelReadiness,
  modelReadiness,
  reportReady,
  saysReady,
} from "./model-reports.js";
import { RefusalLine } from "./refusal-line.js";
import type { ServerInspector } from "./server-inspector.js";
import { type ServiceChange, ServiceWatch } from "./service-watch.js";

/** The options of a `Triton` that are those of its service. */
interface ServiceSettings
  extends Pick<RepositoryOptions, "strictReadiness" | "crashReadiness" | "readyWithOlderVersion"> {
  readonly id?: string;
  readonly allowModelFileOverride?: boolean;
  readonly allowClientSharedMemory?: boolean;
}

/** The models of the server, and what records their requests. */
interface ServedModels {
  readonly registry: ModelRegistry;
  readonly log: Log;
  readonly tracing: Tracing | undefined;
  readonly gpus: Gpus;
}

export class LocalService implements InferenceService {
  readonly log: Log;
  readonly tracing: Tracing | undefined;
  readonly sharedMemory: SharedMemory;
  readonly restrictions: Restrictions;
  readonly allowedHosts: AllowedHosts;
  readonly management: readonly ManagementRoute[];
  readonly #registry: ModelRegistry;
  readonly #listeners = new Set<() => void>();
  readonly #mounted: MountedFrontend[] = [];
  readonly refusals = new RefusalLine(realClock);
  /** Versions that requests without a version mean, until a model changes. A look-up takes longer than the rest of `model`. */
  readonly #latest = new Map<string, ModelVersion>();
  /** True after `drain` was called. */
  stopping = false;
  #leaving = false;

  constructor(
    private readonly settings: ServiceSettings,
    { registry, log, tracing, gpus }: ServedModels,
    private readonly source: ModelSource,
    private readonly page: MetricsPage,
    readonly requestMemory: RequestMemory,
    { restrictions, allowedHosts }: Pick<LocalService, "restrictions" | "allowedHosts">,
    readonly authentication: Authentication | undefined,
    readonly inspector: ServerInspector,
    routes: readonly ManagementRoute[],
  ) {
    this.management = routes.map((route) => this.#guarded(route));
    this.log = log;
    this.tracing = tracing;
    this.sharedMemory = new SharedMemory(settings.allowClientSharedMemory ?? false, gpus.regions);
    this.restrictions = restrictions;
    this.allowedHosts = allowedHosts;
    this.#registry = registry;
    const tell = () => {
      this.#latest.clear();
      for (const listener of this.#listeners) listener();
    };
    registry.onChange(tell);
    void source.startUp.over.then(tell);
  }

  /** Reports from now on that the server is not ready. It still accepts requests. */
  leave(): void {
    this.#leaving = true;
    for (const frontend of this.#mounted) frontend.leave?.();
    for (const listener of this.#listeners) listener();
  }

  /** Starts the shutdown: the server is no longer ready and refuses new requests. */
  drain(): void {
    this.stopping = true;
    for (const frontend of this.#mounted) frontend.drain();
    this.refusals.dissolve();
    for (const listener of this.#listeners) listener();
  }

  /** Called after the last request has finished. */
  end(): void {
    for (const frontend of this.#mounted) frontend.end();
  }

  mount(frontend: MountedFrontend): void {
    this.#mounted.push(frontend);
    if (this.stopping) frontend.drain();
  }

  onChange(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  isLive(): boolean {
    return !this.source.startUp.failed;
  }

  isReady(): boolean {
    const { strictReadiness = true, crashReadiness, readyWithOlderVersion } = this.settings;
    const { source } = this;
    if (this.#refusesAll || this.#leaving || source.startUp.underWay) return false;
    if (!strictReadiness) return true;
    const registry = this.#registry;
    const serves = ({ name, namespace }: RegisteredVersion) =>
      registry.versions(name, namespace).some(({ state }) => state === "READY");
    const settled = registry
      .all()
      .every(
        (one) =>
          one.state === "READY" ||
          one.reason === "unloaded" ||
          (readyWithOlderVersion === true && serves(one)),
      );
    if (!settled || source.lacksVersions) return false;
    return crashReadiness !== "server" || registry.ready().every((one) => one.crashReason === undefined);
  }

  serverMetadata(): ServerMetadata {
    const extensions = serverExtensions(this.sharedMemory.allowed, this.tracing !== undefined);
    return { name: this.settings.id ?? "triton", version: VERSION, extensions };
  }

  isModelReady(name: string, version: string): boolean {
    parseVersion(version);
    this.assertOpen();
    try {
      return this.#registry.find(name, version).crashReason === undefined;
    } catch {
      return false;
    }
  }

  async checkReady(): Promise<boolean> {
    if (!this.isReady()) return false;
    this.source.checkPresence();
    if (this.settings.strictReadiness === false) return true;
    const countsCrashes = this.settings.crashReadiness === "server";
    const all = await Promise.all(
      this.#registry.ready().map((model) => saysReady(model, this.log, countsCrashes)),
    );
    return all.every((one) => one);
  }

  async checkModelReady(name: string, version: string): Promise<boolean> {
    return (await this.modelReadiness(name, version)).ready;
  }

  async modelReadiness(name: string, version: string): Promise<ModelReadiness> {
    parseVersion(version);
    this.assertOpen();
    return modelReadiness(name, version, this.#registry, this.source, this.log);
  }

  model(name: string, version: string): ModelVersion {
    let model = version === "" ? this.#latest.get(name) : undefined;
    if (model?.state === "READY") this.assertOpen();
    else {
      model = this.#find(name, version);
      if (version === "") this.#latest.set(name, model);
    }
    return model;
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
    this.assertOpen();
    return reportReady(this.#registry, name, version);
  }

  queue(name: string, version: string): QueueSnapshot {
    return this.#find(name, version).queue();
  }

  async loadReport(name: string, version: string): Promise<LoadReport> {
    return loadReportOf(this.#find(name, version), (gauge, labels) => this.page.gauge(gauge, labels));
  }

  async repositoryIndex(onlyReady: boolean): Promise<ModelIndexEntry[]> {
    this.assertOpen();
    return this.source.index(onlyReady);
  }

  async loadModel(name: string, parameters: LoadParameters): Promise<void> {
    this.assertOpen();
    if (
      parameters.files !== undefined &&
      parameters.files.size > 0 &&
      !this.settings.allowModelFileOverride
    ) {
      throw errorFor(
        "MODEL_FILES_DISABLED",
        `Files of load requests are disabled, got ${parameters.files.size} for model '${name}'. Start the server with ` +
          "'--allow-model-file-override=true' to enable.",
      );
    }
    const fromNetwork = !this.settings.allowModelFileOverride;
    await (await this.source.load(name, parameters, fromNetwork)).removed;
  }

  async unloadModel(name: string, parameters: UnloadParameters): Promise<void> {
    this.assertOpen();
    await this.source.unload(name, parameters);
  }

  async registerModelRepository(path: string, modelNames?: Readonly<Record<string, string>>): Promise<void> {
    this.assertOpen();
    await this.source.register(path, modelNames);
  }

  unregisterModelRepository(path: string): void {
    this.assertOpen();
    this.source.unregister(path);
  }

  watch(listener: (change: ServiceChange) => void): () => void {
    const { sharedMemory, log, tracing } = this;
    const watch = new ServiceWatch({
      registry: this.#registry,
      server: () => ({
        live: this.isLive(),
        ready: this.isReady(),
        open: !this.#refusesAll,
        log: log.settings,
        traces: tracing?.active ?? false,
      }),
      regions: () => sharedMemory.watched,
    });
    const look = (): void => {
      const change = watch.look();
      if (change !== undefined) listener(change);
    };
    const sources = [sharedMemory, log, ...(tracing === undefined ? [] : [tracing])];
    for (const source of sources) source.onUpdate = look;
    const forget = this.onChange(look);
    look();
    return () => {
      forget();
      for (const source of sources) source.onUpdate = undefined;
    };
  }

  get namespacing(): boolean {
    return this.#registry.namespacing;
  }

  async prepareMetrics(): Promise<void> {
    this.page.prepare();
  }

  countMetric(
    counter: { readonly name: string; readonly help: string },
    labels: Readonly<Record<string, string>>,
    value: number,
  ): void {
    const family = { kind: "counter", labelNames: Object.keys(labels), ...counter } as const;
    applyMetricChange(this.page.registry, { family, labels, action: "add", value });
  }

  metrics(): Promise<string> {
    return this.page.write();
  }

  metricsFor(accept: string | undefined): Promise<MetricsText> {
    return this.page.writeFor(accept);
  }

  /** A route that refuses requests as the operations of the protocol do. */
  #guarded({ get, post, ...route }: ManagementRoute): ManagementRoute {
    const guarded = (operation: ManagementOperation): ManagementOperation => ({
      ...operation,
      run: (request) => {
        this.assertOpen();
        return operation.run(request);
      },
    });
    return { ...route, ...(get && { get: guarded(get) }), ...(post && { post: guarded(post) }) };
  }

  #find(name: string, version: string): ModelVersion {
    this.assertOpen();
    return this.#registry.find(name, version);
  }

  get #refusesAll(): boolean {
    return this.stopping || this.source.startUp.failed;
  }

  assertOpen(): void {
    if (this.#refusesAll) throw errorFor("SERVER_NOT_READY", "Server not ready");
  }

  #readyVersions(name: string): number[] {
    return this.#registry.ready(name).map((model) => model.version);
  }
}

function serverExtensions(allowsSharedMemory: boolean, traces: boolean): string[] {
  return EXTENSIONS.filter(
    (name) => (allowsSharedMemory || !name.endsWith("_shared_memory")) && (traces || name !== "trace"),
  );
}

const EXTENSIONS = [
  "classification",
  "sequence",
  "model_repository",
  "model_repository(unload_dependents)",
  "schedule_policy",
  "model_configuration",
  "system_shared_memory",
  "cuda_shared_memory",
  "binary_tensor_data",
  "parameters",
  "statistics",
  "trace",
  "logging",
];
