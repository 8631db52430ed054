import { type ModelConfig, type Tensor, TritonError } from "@tritonjs/core";
import { NO_PARAMETERS } from "@tritonjs/protocol";
import {
  type FoundModel,
  type InferenceResponse,
  type InferenceService,
  Log,
  type ModelReadiness,
  RequestMemory,
} from "@tritonjs/server";
import { SharedMemory } from "@tritonjs/server/internal";
import type { InferenceRequest } from "@tritonjs/testing";

/** A configuration with only the fields that a test gives it. */
export function modelConfig(name: string, config: Partial<ModelConfig> = {}): ModelConfig {
  return {
    name,
    platform: "",
    backend: "javascript",
    runtime: "",
    versionPolicy: { latest: { numVersions: 1 } },
    maxBatchSize: 0,
    input: [],
    output: [],
    batchInput: [],
    batchOutput: [],
    instanceGroup: [],
    defaultModelFilename: "",
    ccModelFilenames: {},
    metricTags: {},
    parameters: {},
    modelWarmup: [],
    ...config,
  };
}

/** A response of `request` with these outputs. */
export function responseTo(
  request: InferenceRequest,
  outputs: ReadonlyMap<string, Tensor>,
  parameters: InferenceResponse["parameters"] = NO_PARAMETERS,
): InferenceResponse {
  return { modelName: request.modelName, modelVersion: "1", id: request.id, parameters, outputs };
}

/** A service with one model, `m`, that records its requests; by default it answers with its inputs. */
export class FakeService implements InferenceService {
  readonly log = new Log({ error() {}, warn() {}, info() {}, debug() {} });
  readonly sharedMemory = new SharedMemory(false);
  requestMemory = new RequestMemory();
  readonly restrictions = {};
  /** The requests, each with the version that its look-up named. */
  readonly requests: (InferenceRequest & { readonly modelVersion: string })[] = [];
  live = true;
  config: ModelConfig;
  labels: ReadonlyMap<string, readonly string[]> = new Map();
  refusals: InferenceService["refusals"];
  readonly #listeners = new Set<() => void>();
  #ready = true;
  #onInfer: (request: InferenceRequest) => void;

  get ready(): boolean {
    return this.#ready;
  }

  set ready(ready: boolean) {
    this.#ready = ready;
    for (const listener of this.#listeners) listener();
  }

  constructor(
    config: Partial<ModelConfig> = {},
    onInfer: (request: InferenceRequest) => void = (request) =>
      void request.respond(responseTo(request, request.inputs)),
  ) {
    this.config = modelConfig("m", config);
    this.#onInfer = onInfer;
  }

  assertOpen(): void {}

  isLive(): boolean {
    return this.live;
  }

  isReady(): boolean {
    return this.ready;
  }

  serverMetadata() {
    return { name: "triton", version: "1.2.3", extensions: ["classification", "sequence"] };
  }

  isModelReady(name: string, version: string): boolean {
    return name === "m" && (version === "" || version === "1");
  }

  async checkReady(): Promise<boolean> {
    return this.isReady();
  }

  async checkModelReady(name: string, version: string): Promise<boolean> {
    return this.isModelReady(name, version);
  }

  async modelReadiness(name: string, version: string): Promise<ModelReadiness> {
    return { ready: this.isModelReady(name, version), reason: "" };
  }

  model(name: string, version: string): FoundModel {
    if (!this.isModelReady(name, version)) {
      throw new TritonError("NOT_FOUND", `Request for unknown model: '${name}' is not found`);
    }
    const model: FoundModel = {
      name,
      version: 1,
      config: this.config,
      labels: this.labels,
      inService: true,
      infer: (sent) => {
        const request = Object.assign(sent, { modelVersion: version });
        this.requests.push(request);
        this.#onInfer(request);
        return request;
      },
    };
    return model;
  }

  modelMetadata(name: string, version: string) {
    this.model(name, version);
    return {
      name,
      versions: ["1"],
      platform: "javascript",
      inputs: [{ name: "X", datatype: "INT32", shape: [-1, 2] }],
      outputs: [{ name: "Y", datatype: "BYTES", shape: [-1] }],
    };
  }

  modelConfig(name: string, version: string): ModelConfig {
    return this.model(name, version).config;
  }

  statistics(name: string) {
    if (name !== "" && name !== "m") {
      throw new TritonError("INVALID_ARG", `requested model '${name}' is not available`);
    }
    const none = { count: 0, ns: 0 };
    return [
      {
        name: "m",
        version: "1",
        lastInference: 1_700_000_000_123,
        inferenceCount: 3,
        executionCount: 2,
        inferenceStats: {
          success: { count: 3, ns: 5_000_000_000_000 },
          fail: none,
          queue: none,
          computeInput: none,
          computeInfer: none,
          computeOutput: none,
          cacheHit: none,
          cacheMiss: none,
        },
        responseStats: {},
        batchStats: [
          { batchSize: 2, computeInput: none, computeInfer: { count: 1, ns: 7 }, computeOutput: none },
        ],
        memoryUsage: [],
      },
    ];
  }

  queue(): never {
    throw new Error("no method of gRPC asks for it");
  }

  async loadModel(): Promise<void> {
    throw new TritonError("UNAVAILABLE", "explicit model load / unload is not allowed if polling is enabled");
  }

  unloadModel(): Promise<void> {
    return this.loadModel();
  }

  onChange(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  async repositoryIndex(onlyReady: boolean) {
    const ready = { name: "m", version: "1", state: "READY" };
    return onlyReady ? [ready] : [ready, { name: "other" }];
  }

  metrics(): Promise<string> {
    return Promise.resolve("");
  }

  async metricsFor() {
    return { type: "text/plain; charset=utf-8", body: [Buffer.from(await this.metrics())] };
  }
}
