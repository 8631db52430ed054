import {
  type AllowedHosts,
  applyMetricChange,
  type FrontendServer,
  type LoadParameters,
  type Log,
  type ManagementOperation,
  type ManagementRoute,
  type MetricsPage,
  type MetricsText,
  type ModelRegistry,
  type ModelSource,
  type ModelVersion,
  type MountedFrontend,
  modelMetadata,
  parseVersion,
  type QueueSnapshot,
  type RegisteredVersion,
  realClock,
  type ServiceOptions,
  saysReady,
  type Tracing,
  type UnloadParameters,
  VERSION,
} from "@tritonjs/core/internal/server";
import {
  errorFor,
  type ModelConfig,
  type ModelIndexEntry,
  type ModelMetadata,
  type ModelStatisticsReport,
  type ServerMetadata,
} from "@tritonjs/protocol";
import { type Authentication, createAuthentication, type Restrictions } from "../access/access-control.js";
import { resolveSecurity } from "../access/security.js";
import { SharedMemory } from "../shared-memory/shared-memory.js";
import type { InferenceService } from "./inference-service.js";
import {
  type LoadReport,
  loadReportOf,
  type ModelReadiness,
  modelReadiness,
  reportReady,
} from "./model-reports.js";
import { RefusalLine } from "./refusal-line.js";
import { RequestMemory } from "./request-memory.js";
import { requestMemoryFamilies } from "./request-memory-metrics.js";
import { ServerInspector } from "./server-inspector.js";
import { type ServiceChange, ServiceWatch } from "./service-watch.js";

/** The service of a `Triton`. */
export class LocalService implements InferenceService {
  readonly log: Log;
  readonly tracing: Tracing | undefined;
  readonly sharedMemory: SharedMemory;
  readonly requestMemory: RequestMemory;
  readonly accessToken: string | undefined;
  readonly restrictions: Restrictions;
  readonly allowedHosts: AllowedHosts;
  readonly authentication: Authentication | undefined;
  readonly management: readonly ManagementRoute[];
  readonly inspector: ServerInspector;
  readonly refusals = new RefusalLine(realClock);
  readonly #server: FrontendServer;
  readonly #registry: ModelRegistry;
  readonly #source: ModelSource;
  readonly #page: MetricsPage;
  readonly #settings: ServiceOptions;
  readonly #listeners = new Set<() => void>();
  /** Versions that requests without a version mean, until a model changes. A look-up takes longer than the rest of `model`. */
  readonly #latest = new Map<string, ModelVersion>();
  #state: "serving" | "leaving" | "stopping" = "serving";

  /** @throws TritonError INVALID_ARG for options that are not valid */
  constructor(server: FrontendServer) {
    const { options, registry, source, log, tracing, metrics } = server;
    const { accessToken, restrictions, allowedHosts } = resolveSecurity(options.security);
    this.#server = server;
    this.#registry = registry;
    this.#source = source;
    this.#page = metrics;
    this.#settings = options;
    this.log = log;
    this.tracing = tracing;
    this.sharedMemory = new SharedMemory(options.allowClientSharedMemory ?? false, server.gpus.regions);
    this.requestMemory = new RequestMemory(options.requestMemory);
    this.accessToken = accessToken;
    this.restrictions = restrictions;
    this.allowedHosts = allowedHosts;
    this.authentication = createAuthentication(options.security, log.of("access_control"));
    this.management = server.routes.map((route) => this.#guarded(route));
    this.inspector = new ServerInspector(server);
    metrics.add(requestMemoryFamilies(this.requestMemory));
    registry.onChange(() => this.#tell());
    void source.startUp.over.then(() => this.#tell());
    server.mount({
      leave: () => this.#enter("leaving"),
      drain: () => {
        this.#enter("stopping");
        this.refusals.dissolve();
      },
      end() {},
      close: () => this.sharedMemory.close(),
    });
  }

  #enter(state: "leaving" | "stopping"): void {
    this.#state = state;
    for (const listener of this.#listeners) listener();
  }

  #tell(): void {
    this.#latest.clear();
    for (const listener of this.#listeners) listener();
  }

  mount(frontend: MountedFrontend): void {
    this.#server.mount(frontend);
  }

  onChange(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  isLive(): boolean {
    return !this.#source.startUp.failed;
  }

  isReady(): boolean {
    const { strictReadiness = true, crashReadiness, readyWithOlderVersion } = this.#settings;
    const source = this.#source;
    if (this.#refusesAll || this.#state === "leaving" || source.startUp.underWay) return false;
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
    return { name: this.#settings.id ?? "triton", version: VERSION, extensions };
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
    this.#source.checkPresence();
    if (this.#settings.strictReadiness === false) return true;
    const countsCrashes = this.#settings.crashReadiness === "server";
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
    return modelReadiness(name, version, this.#registry, this.#source, this.log);
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
    return loadReportOf(this.#find(name, version), (gauge, labels) => this.#page.gauge(gauge, labels));
  }

  async repositoryIndex(onlyReady: boolean): Promise<ModelIndexEntry[]> {
    this.assertOpen();
    return this.#source.index(onlyReady);
  }

  async loadModel(name: string, parameters: LoadParameters): Promise<void> {
    this.assertOpen();
    await (await this.#source.load(name, parameters, true)).removed;
  }

  async unloadModel(name: string, parameters: UnloadParameters): Promise<void> {
    this.assertOpen();
    await this.#source.unload(name, parameters);
  }

  async registerModelRepository(path: string, modelNames?: Readonly<Record<string, string>>): Promise<void> {
    this.assertOpen();
    await this.#source.register(path, modelNames);
  }

  unregisterModelRepository(path: string): void {
    this.assertOpen();
    this.#source.unregister(path);
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
    this.#page.prepare();
  }

  countMetric(
    counter: { readonly name: string; readonly help: string },
    labels: Readonly<Record<string, string>>,
    value: number,
  ): void {
    const family = { kind: "counter", labelNames: Object.keys(labels), ...counter } as const;
    applyMetricChange(this.#page.registry, { family, labels, action: "add", value });
  }

  metrics(): Promise<string> {
    return this.#page.write();
  }

  metricsFor(accept: string | undefined): Promise<MetricsText> {
    return this.#page.writeFor(accept);
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
    return this.#state === "stopping" || this.#source.startUp.failed;
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
