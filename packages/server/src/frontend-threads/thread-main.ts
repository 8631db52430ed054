import { workerData } from "node:worker_threads";
import type { ReadHeaders } from "@tritonjs/core/internal/server";
import {
  type AllowedHosts,
  type FrontendAddress,
  type GpuRegions,
  type InferenceRequest,
  type ManagementRequest,
  type ManagementRoute,
  type MappedGpuMemory,
  modelMetadata,
  parseVersion,
  pickNamespace,
  pickVersion,
  type RequestHandle,
} from "@tritonjs/core/internal/server";
import {
  errorFor,
  type ModelConfig,
  type ModelMetadata,
  type ServerMetadata,
  TritonError,
} from "@tritonjs/protocol";
import { Authentication, type Restrictions } from "../access/access-control.js";
import type { ServiceFrontend, ThreadedFrontend } from "../frontend/service-frontend.js";
import type { FoundModel, InferenceService } from "../service/inference-service.js";
import type { ModelReadiness } from "../service/model-reports.js";
import { RequestMemory } from "../service/request-memory.js";
import type {
  ServiceChange,
  WatchedModel,
  WatchedRouter,
  WatchedServer,
  WatchedVersion,
} from "../service/service-watch.js";
import {
  type CudaRegionRequest,
  type RegisteredCudaRegion,
  RegisteredRegion,
  type RegisteredSystemRegion,
  SharedMemory,
  type SystemRegionRequest,
  type WatchedRegion,
} from "../shared-memory/shared-memory.js";
import { DescriptorObject, type SharedObject } from "../shared-memory/shared-object.js";
import {
  type ClonedAuthenticationRequest,
  Control,
  type ForwardedMethod,
  type FrontendThreadData,
  type Methods,
  type ServiceData,
  withOperations,
} from "./control.js";
import type { ReadyVersion } from "./engine-requests.js";
import { MirroredLog, MirroredTracing, SentRequests } from "./mirrored-requests.js";
import { ThreadLink } from "./thread-link.js";

/*
 * The program of a frontend thread, and the service that its frontends see.
 */

/** Milliseconds between two times that the engine hears of readiness probes which this thread answers. */
const TELL_PROBES_EVERY_MS = 1000;

/**
 * The service of the engine, as the frontends of a thread see it. Models, readiness and settings are copies, which are
 * current at each look-up. Requests go to the engine in frames, other operations as calls.
 */
class MirroredService implements InferenceService {
  readonly log: MirroredLog;
  readonly tracing: MirroredTracing | undefined;
  readonly sharedMemory: MirroredSharedMemory;
  readonly requestMemory: RequestMemory;
  readonly restrictions: Restrictions;
  readonly allowedHosts: AllowedHosts;
  readonly authentication: Authentication | undefined;
  readonly management: readonly ManagementRoute[];
  readonly #control: Control;
  readonly #metadata: ServerMetadata;
  readonly #namespacing: boolean;
  /** The versions of all models, by name, namespace and number. */
  readonly #models = new Map<string, Map<string, Map<number, WatchedVersion>>>();
  readonly #routers = new Map<string, WatchedRouter>();
  readonly #requests: SentRequests;
  readonly #listeners = new Set<() => void>();
  #server: WatchedServer;
  #toldProbes = Number.NEGATIVE_INFINITY;

  constructor(data: ServiceData, control: Control, requests: SentRequests) {
    this.#control = control;
    this.#metadata = data.metadata;
    this.#server = data.state.server!;
    this.restrictions = data.restrictions;
    this.allowedHosts = data.allowedHosts ?? [];
    this.log = new MirroredLog(control, this.#server.log);
    this.tracing = data.traces ? new MirroredTracing(control, this.log, data.timeOrigin) : undefined;
    this.sharedMemory = new MirroredSharedMemory(data.allowsSharedMemory, data.regionUsers, control);
    this.requestMemory = new RequestMemory(data.requestMemory);
    this.requestMemory.join(data.memoryRows, data.memoryRow);
    this.authentication = data.authentication && this.#authentication(data.authentication);
    this.management = withOperations(data.management, (operation, { path }, method) => ({
      ...operation,
      run: (request: ManagementRequest) => control.call("manage", path, method, request),
    }));
    this.#namespacing = data.namespacing;
    this.#requests = requests;
    this.take(data.state);
  }

  take({ server, models, regions }: ServiceChange): void {
    for (const model of models) this.#set(model);
    if (regions !== undefined) this.sharedMemory.take(regions);
    if (server !== undefined) {
      this.#server = server;
      this.log.take(server.log);
      if (this.tracing !== undefined) this.tracing.isOn = server.traces;
    }
    for (const listener of this.#listeners) listener();
  }

  onChange(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  isLive(): boolean {
    return this.#current.live;
  }

  isReady(): boolean {
    return this.#current.ready;
  }

  serverMetadata(): ServerMetadata {
    return this.#metadata;
  }

  isModelReady(name: string, version: string): boolean {
    try {
      this.#find(name, version);
      return true;
    } catch (error) {
      const { reason } = TritonError.from(error);
      if (reason === "INVALID_VERSION" || reason === "SERVER_NOT_READY") throw error;
      return false;
    }
  }

  async checkReady(): Promise<boolean> {
    if (!this.isReady()) return false;
    if (this.#someReportReadiness) return this.#control.call("checkReady");
    const now = performance.now();
    if (now - this.#toldProbes > TELL_PROBES_EVERY_MS) {
      this.#toldProbes = now;
      this.#control.tell("checkReady");
    }
    return true;
  }

  async checkModelReady(name: string, version: string): Promise<boolean> {
    return (await this.modelReadiness(name, version)).ready;
  }

  async modelReadiness(name: string, version: string): Promise<ModelReadiness> {
    try {
      if (!this.#find(name, version).reportsReadiness) return { ready: true, reason: "" };
    } catch {
      // The engine knows why the model is not served.
    }
    return this.#control.call("modelReadiness", name, version);
  }

  model(name: string, version: string): MirroredModel {
    return new MirroredModel(this, this.#find(name, version), version);
  }

  modelMetadata(name: string, version: string): ModelMetadata {
    const found = this.#find(name, version);
    return modelMetadata(found.config, version === "" ? this.#readyVersions(name) : [found.version]);
  }

  readonly modelConfig = this.#forwardSync("modelConfig");
  readonly statistics = this.#forwardSync("statistics");
  readonly queue = this.#forwardSync("queue");
  readonly loadReport = this.#forward("loadReport");
  readonly repositoryIndex = this.#forward("repositoryIndex");
  readonly loadModel = this.#forward("loadModel");
  readonly unloadModel = this.#forward("unloadModel");
  readonly registerModelRepository = this.#forward("registerModelRepository");
  readonly unregisterModelRepository = this.#forwardSync("unregisterModelRepository");
  readonly prepareMetrics = this.#forward("prepareMetrics");
  readonly metrics = this.#forward("metrics");
  readonly metricsFor = this.#forward("metricsFor");

  /** True while a version is in service. */
  serves({ name, namespace, version, key }: WatchedVersion): boolean {
    this.#control.catchUp();
    const now = this.#models.get(name)?.get(namespace)?.get(version);
    return now?.key === key && now.state === "READY";
  }

  /** The header that has the key by which the versions of a model are chosen. */
  keyHeader(name: string): string | undefined {
    return this.#routers.get(name)?.keyHeader;
  }

  send(model: MirroredModel, request: InferenceRequest): RequestHandle {
    return this.#requests.send(model, request);
  }

  #set({ name, namespace, versions, router }: WatchedModel): void {
    if (router === undefined) this.#routers.delete(name);
    else this.#routers.set(name, router);
    const spaces = this.#models.get(name) ?? new Map<string, Map<number, WatchedVersion>>();
    this.#models.set(name, spaces);
    if (versions !== undefined) {
      spaces.set(namespace, new Map(versions.map((version) => [version.version, version])));
      return;
    }
    spaces.delete(namespace);
    if (spaces.size === 0) this.#models.delete(name);
  }

  /** @throws TritonError as the service of the engine does. */
  #find(name: string, requested: string): ReadyVersion {
    this.#control.catchUp();
    this.assertOpen();
    const version = parseVersion(requested);
    const versions = pickNamespace(name, this.#models.get(name), this.#namespacing);
    const router = version === undefined ? this.#routers.get(name) : undefined;
    const routed = router && versions.get(router.version);
    return (routed?.state === "READY" ? routed : pickVersion(name, versions, version)) as ReadyVersion;
  }

  #ready(spaces: Iterable<ReadonlyMap<number, WatchedVersion>> = []): WatchedVersion[] {
    return [...spaces].flatMap((versions) => [...versions.values()].filter(({ state }) => state === "READY"));
  }

  /** True if a model in service reports its own readiness. */
  get #someReportReadiness(): boolean {
    for (const spaces of this.#models.values()) {
      if (this.#ready(spaces.values()).some(({ reportsReadiness }) => reportsReadiness)) return true;
    }
    return false;
  }

  /** Numbers of the ready versions of a model, in ascending order. */
  #readyVersions(name: string): number[] {
    return this.#ready(this.#models.get(name)?.values())
      .map(({ version }) => version)
      .sort((a, b) => a - b);
  }

  get #current(): WatchedServer {
    this.#control.catchUp();
    return this.#server;
  }

  #authentication(options: NonNullable<ServiceData["authentication"]>): Authentication {
    return new Authentication(
      ({ headers, ...request }) => {
        const cloned: ClonedAuthenticationRequest = { ...request, headers: [...headers] };
        return this.#control.call("authenticate", cloned);
      },
      options,
      this.log,
    );
  }

  assertOpen(): void {
    if (this.#server.open) return;
    throw errorFor("SERVER_NOT_READY", "Server not ready");
  }

  #forward<N extends ForwardedMethod>(method: N): InferenceService[N] {
    return ((...args: unknown[]) => this.#control.call(method, ...args)) as InferenceService[N];
  }

  #forwardSync<N extends ForwardedMethod>(method: N): InferenceService[N] {
    return ((...args: unknown[]) => this.#control.callSync(method, ...args)) as InferenceService[N];
  }
}

/** The copy of a model version that one look-up has found. */
class MirroredModel implements FoundModel {
  readonly config: ModelConfig;

  constructor(
    private readonly service: MirroredService,
    private readonly found: ReadyVersion,
    private readonly requested: string,
  ) {
    this.config = found.config;
  }

  get key(): number {
    return this.found.key;
  }

  /** True if the client named no version. */
  get latest(): boolean {
    return this.requested === "";
  }

  get name(): string {
    return this.found.name;
  }

  get version(): number {
    return this.found.version;
  }

  get labels(): ReadonlyMap<string, readonly string[]> {
    return this.found.labels;
  }

  get directory(): string | undefined {
    return this.found.directory;
  }

  get inService(): boolean {
    return this.service.serves(this.found);
  }

  get reads(): ReadHeaders | undefined {
    return this.found.reads;
  }

  /** Only the thread has the headers. The engine chooses the version by the key. */
  get keyHeader(): string | undefined {
    return this.service.keyHeader(this.name);
  }

  infer(request: InferenceRequest): RequestHandle {
    return this.service.send(this, request);
  }
}

/**
 * The shared memory of the engine, as a thread uses it. The engine registers regions and owns their descriptors, which
 * all threads of a process share. A count of users in shared memory keeps a descriptor open while a thread uses it.
 */
class MirroredSharedMemory extends SharedMemory {
  readonly #control: Control;
  readonly #words: Int32Array;
  #current = new Map<string, MirroredRegion>();

  constructor(allowed: boolean, words: Int32Array, control: Control) {
    super(allowed, gpuRegions);
    this.#words = words;
    this.#control = control;
  }

  take(regions: readonly WatchedRegion[]): void {
    this.#current = new Map(
      regions.map((region) => {
        const known = this.#current.get(region.status.name);
        const isSame =
          known?.watched.descriptor === region.descriptor && known.watched.index === region.index;
        return [region.status.name, isSame ? known : new MirroredRegion(this, region, this.#words)];
      }),
    );
  }

  isCurrent(region: MirroredRegion): boolean {
    this.#control.catchUp();
    return this.#current.get(region.status.name) === region;
  }

  override systemStatus(name: string): RegisteredSystemRegion[] {
    return this.#control.callSync("systemStatus", name);
  }

  override registerSystem(name: string, region: SystemRegionRequest): Promise<void> {
    return this.#control.call("registerSystem", name, region);
  }

  override unregisterSystem(name: string): void {
    this.#control.callSync("unregisterSystem", name);
  }

  override cudaStatus(name: string): RegisteredCudaRegion[] {
    return this.#control.callSync("cudaStatus", name);
  }

  override registerCuda(name: string, region: CudaRegionRequest): void {
    this.#control.callSync("registerCuda", name, region);
  }

  override unregisterCuda(name: string): void {
    this.#control.callSync("unregisterCuda", name);
  }

  override settle(): void {
    this.#control.tell("settleRegions");
  }

  protected override region(name: string): RegisteredRegion | undefined {
    this.#control.catchUp();
    return this.#current.get(name);
  }
}

/** The object of a region, as this thread reads it. The engine closes it. */
function openedObject({ status, descriptor }: WatchedRegion): SharedObject | MappedGpuMemory {
  if (typeof descriptor === "number") return new DescriptorObject(descriptor);
  const { deviceId, byteSize } = status as RegisteredCudaRegion;
  return gpuRegions!.attach(deviceId, descriptor, byteSize);
}

class MirroredRegion extends RegisteredRegion {
  readonly watched: WatchedRegion;
  readonly #memory: MirroredSharedMemory;

  constructor(memory: MirroredSharedMemory, watched: WatchedRegion, words: Int32Array) {
    super(watched.status, openedObject(watched), words, watched.index);
    this.watched = watched;
    this.#memory = memory;
  }

  /** The place of the count may belong to another region by now. */
  override use(): boolean {
    if (!super.use()) return false;
    if (this.#memory.isCurrent(this)) return true;
    if (this.endUse()) this.#memory.settle();
    return false;
  }
}

const data = workerData as FrontendThreadData;
const { gpuRegions: gpuModule } = data.service;
const { gpuRegions } = (gpuModule === undefined ? {} : await import(gpuModule)) as {
  readonly gpuRegions?: GpuRegions;
};
const frontends = new Map<string, ServiceFrontend>();
const requests = new SentRequests(() => link);

const methods: Methods = {
  wake: () => link.wake(),
  change: (change: ServiceChange) => service.take(change),
  async open(name: string, { module, name: maker, options }: ThreadedFrontend): Promise<FrontendAddress> {
    const makers = (await import(module)) as Record<string, (options: unknown) => ServiceFrontend>;
    const frontend = makers[maker]!(options);
    frontends.set(name, frontend);
    return frontend.start({ service });
  },
  leave: (name: string) => frontends.get(name)?.leave?.(),
  settle: (name: string) => frontends.get(name)?.settle?.(),
  async stop(name: string, drainTimeoutMs: number | undefined): Promise<void> {
    await frontends.get(name)?.stop(drainTimeoutMs);
    frontends.delete(name);
  },
  end(): void {
    link.close();
    control.close(new Error("the thread has ended"));
  },
};

const control = new Control(data.control, data.signals, methods, false);
const link: ThreadLink = new ThreadLink(data.link, control, requests);
const service = new MirroredService(data.service, control, requests);
