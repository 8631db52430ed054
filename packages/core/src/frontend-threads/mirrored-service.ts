import {
  type ModelConfig,
  type ModelIndexEntry,
  type ModelMetadata,
  type ModelStatisticsReport,
  type ServerMetadata,
  TritonError,
} from "@tritonjs/protocol";
import { modelMetadata } from "../config/model-metadata.js";
import type { QueueSnapshot } from "../model/version-status.js";
import type { MetricsText } from "../observe/metrics-page.js";
import type { LoadParameters, UnloadParameters } from "../repository/repository-options.js";
import { RequestMemory } from "../request/request-memory.js";
import { type AllowedHosts, Authentication, type Restrictions } from "../service/access-control.js";
import type { InferenceService, PinnedModel } from "../service/inference-service.js";
import type { LoadReport, ModelReadiness } from "../service/model-reports.js";
import type { ServiceChange, WatchedServer } from "../service/service-watch.js";
import {
  type RegisteredCudaRegion,
  RegisteredRegion,
  type RegisteredSystemRegion,
  SharedMemory,
  type SystemRegionRequest,
  type WatchedRegion,
} from "../shared-memory/shared-memory.js";
import { DescriptorObject } from "../shared-memory/shared-object.js";
import type { Control, ServiceData } from "./control.js";
import type { ClonedAuthenticationRequest, ForwardedMethod } from "./frontend-thread.js";
import { MirroredLog, MirroredModels, MirroredTracing, type SentRequests } from "./mirrored-models.js";

/** Milliseconds between two times that the engine hears of readiness probes which this thread answers. */
const TELL_PROBES_EVERY_MS = 1000;

/**
 * The service of the engine, as the frontends of a thread see it. Models, readiness and settings are copies, which are
 * current at each look-up. Requests go to the engine in frames, other operations as calls.
 */
export class MirroredService implements InferenceService {
  readonly log: MirroredLog;
  readonly tracing: MirroredTracing | undefined;
  readonly sharedMemory: MirroredSharedMemory;
  readonly requestMemory: RequestMemory;
  readonly restrictions: Restrictions;
  readonly allowedHosts: AllowedHosts;
  readonly authentication: Authentication | undefined;
  readonly #control: Control;
  readonly #metadata: ServerMetadata;
  readonly #models: MirroredModels;
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
    this.#models = new MirroredModels(data.namespacing, {
      catchUp: () => control.catchUp(),
      assertOpen: () => this.#assertOpen(),
      send: (model, request) => requests.send(model, request),
    });
    this.take(data.state);
  }

  /** Takes a change of the engine's service. */
  take({ server, models, regions }: ServiceChange): void {
    for (const model of models) this.#models.set(model);
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
      this.#models.find(name, version);
      return true;
    } catch (error) {
      const { reason } = TritonError.from(error);
      if (reason === "INVALID_VERSION" || reason === "SERVER_NOT_READY") throw error;
      return false;
    }
  }

  async checkReady(): Promise<boolean> {
    if (!this.isReady()) return false;
    if (this.#models.someReportReadiness) return this.#call("checkReady");
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
      if (!this.#models.find(name, version).reportsReadiness) return { ready: true, reason: "" };
    } catch {
      // The engine knows why the model is not served.
    }
    return this.#call("modelReadiness", name, version);
  }

  model(name: string, version: string): PinnedModel {
    return this.#models.pin(name, version);
  }

  modelMetadata(name: string, version: string): ModelMetadata {
    const found = this.#models.find(name, version);
    return modelMetadata(found.config, version === "" ? this.#models.readyVersions(name) : [found.version]);
  }

  modelConfig(name: string, version: string): ModelConfig {
    return this.#callSync("modelConfig", name, version);
  }

  statistics(name: string, version: string): ModelStatisticsReport[] {
    return this.#callSync("statistics", name, version);
  }

  queue(name: string, version: string): QueueSnapshot {
    return this.#callSync("queue", name, version);
  }

  loadReport(name: string, version: string): Promise<LoadReport> {
    return this.#call("loadReport", name, version);
  }

  repositoryIndex(onlyReady: boolean): Promise<ModelIndexEntry[]> {
    return this.#call("repositoryIndex", onlyReady);
  }

  loadModel(name: string, parameters: LoadParameters): Promise<void> {
    return this.#call("loadModel", name, parameters);
  }

  unloadModel(name: string, parameters: UnloadParameters): Promise<void> {
    return this.#call("unloadModel", name, parameters);
  }

  registerModelRepository(path: string, modelNames?: Readonly<Record<string, string>>): Promise<void> {
    return this.#call("registerModelRepository", path, modelNames);
  }

  unregisterModelRepository(path: string): void {
    this.#callSync("unregisterModelRepository", path);
  }

  metrics(): Promise<string> {
    return this.#call("metrics");
  }

  metricsFor(accept: string | undefined): Promise<MetricsText> {
    return this.#call("metricsFor", accept);
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

  #assertOpen(): void {
    if (this.#server.open) return;
    throw new TritonError("UNAVAILABLE", "Server not ready", { reason: "SERVER_NOT_READY" });
  }

  #call<T>(method: ForwardedMethod, ...args: readonly unknown[]): Promise<T> {
    return this.#control.call(method, ...args);
  }

  #callSync<T>(method: ForwardedMethod, ...args: readonly unknown[]): T {
    return this.#control.callSync(method, ...args);
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
    super(allowed);
    this.#words = words;
    this.#control = control;
  }

  /** Takes the regions of the engine. */
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

  /** True if a region is still registered. */
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

  override settle(): void {
    this.#control.tell("settleRegions");
  }

  protected override region(name: string): RegisteredRegion | undefined {
    this.#control.catchUp();
    return this.#current.get(name);
  }
}

/** A region that the engine has registered. */
class MirroredRegion extends RegisteredRegion {
  readonly watched: WatchedRegion;
  readonly #memory: MirroredSharedMemory;

  constructor(memory: MirroredSharedMemory, watched: WatchedRegion, words: Int32Array) {
    super(watched.status, new DescriptorObject(watched.descriptor), words, watched.index);
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
