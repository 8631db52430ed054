import type { QueueSnapshot } from "@tritonjs/core";
import {
  type AllowedHosts,
  Authentication,
  type InferenceService,
  type LoadReport,
  type ModelReadiness,
  modelMetadata,
  type PinnedModel,
  RequestMemory,
  type Restrictions,
  type ServiceChange,
  type WatchedServer,
} from "@tritonjs/core/frontend";
import type { LoadParameters, MetricsText, UnloadParameters } from "@tritonjs/core/types";
import {
  type ModelConfig,
  type ModelIndexEntry,
  type ModelMetadata,
  type ModelStatisticsReport,
  type ServerMetadata,
  TritonError,
} from "@tritonjs/protocol";
import type { ClonedAuthenticationRequest, ForwardedMethod } from "../engine/service-calls.js";
import type { Control } from "../messages/control.js";
import type { ServiceData } from "../messages/thread-data.js";
import { MirroredLog } from "./mirrored-log.js";
import { MirroredModels } from "./mirrored-models.js";
import { MirroredSharedMemory } from "./mirrored-shared-memory.js";
import { MirroredTracing } from "./mirrored-tracing.js";
import type { SentRequests } from "./sent-requests.js";

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
      send: (model, init, onResponse) => requests.send(model, init, onResponse),
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
