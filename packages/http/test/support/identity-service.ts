import { type ModelConfig, Tensor, TritonError } from "@tritonjs/core";
import { toConfigDataType } from "@tritonjs/protocol";
import {
  type FoundModel,
  type InferenceService,
  Log,
  type ModelReadiness,
  RequestMemory,
} from "@tritonjs/server";
import { SharedMemory } from "@tritonjs/server/internal";
import type { InferenceRequest } from "@tritonjs/testing";

type DataType = Tensor["datatype"];

/** A configuration with one input `IN` and one output `OUT` of the same type and shape. */
export function identityConfig(
  name: string,
  datatype: DataType,
  dims: number[] = [-1],
  maxBatchSize = 0,
): ModelConfig {
  const tensor = {
    dataType: toConfigDataType(datatype),
    dims,
    isShapeTensor: false,
    isNonLinearFormatIo: false,
  };
  return {
    name,
    platform: "",
    backend: "javascript",
    runtime: "",
    versionPolicy: { latest: { numVersions: 1 } },
    maxBatchSize,
    input: [{ ...tensor, name: "IN", format: "FORMAT_NONE", allowRaggedBatch: false, optional: false }],
    output: [{ ...tensor, name: "OUT", labelFilename: "" }],
    batchInput: [],
    batchOutput: [],
    instanceGroup: [],
    defaultModelFilename: "",
    ccModelFilenames: {},
    metricTags: {},
    parameters: {},
    modelWarmup: [],
  };
}

/** A service of identity models. A test can hold requests back and answer them itself. */
export class IdentityService implements InferenceService {
  readonly log = new Log({ error() {}, warn() {}, info() {}, debug() {} });
  readonly sharedMemory = new SharedMemory(false);
  requestMemory = new RequestMemory();
  readonly restrictions = {};
  ready = true;
  /** Requests seen, oldest first. */
  readonly requests: InferenceRequest[] = [];
  /** Called with each request instead of answering it. */
  onRequest: ((request: InferenceRequest) => void) | undefined;
  readonly #models: readonly ModelConfig[];

  /** The queue of all models, and the line of requests that wait for room in it. */
  queueOfModels: FoundModel["requests"];
  refusals: InferenceService["refusals"];

  constructor(...models: ModelConfig[]) {
    this.#models = models;
  }

  assertOpen(): void {}

  isLive(): boolean {
    return true;
  }

  isReady(): boolean {
    return this.ready;
  }

  serverMetadata() {
    return { name: "triton", version: "1", extensions: ["binary_tensor_data"] };
  }

  isModelReady(name: string): boolean {
    return this.#models.some((config) => config.name === name);
  }

  async checkReady(): Promise<boolean> {
    return this.isReady();
  }

  async checkModelReady(name: string): Promise<boolean> {
    return this.isModelReady(name);
  }

  async modelReadiness(name: string): Promise<ModelReadiness> {
    return { ready: this.isModelReady(name), reason: "" };
  }

  model(name: string): FoundModel {
    const config = this.#models.find((known) => known.name === name);
    if (config === undefined) {
      throw new TritonError("NOT_FOUND", `Request for unknown model: '${name}' is not found`);
    }
    const model: FoundModel = {
      name,
      version: 1,
      config,
      labels: new Map([["OUT", ["zero", "one"]]]),
      inService: true,
      requests: this.queueOfModels,
      infer: (request) => {
        this.requests.push(request);
        if (this.onRequest === undefined) this.answer(request);
        else this.onRequest(request);
        return request;
      },
    };
    return model;
  }

  modelMetadata(name: string) {
    this.model(name);
    return { name, versions: ["1"], platform: "javascript", inputs: [], outputs: [] };
  }

  modelConfig(name: string): ModelConfig {
    return this.model(name).config;
  }

  statistics() {
    return [];
  }

  queue(): never {
    throw new Error("no route asks for it");
  }

  async loadModel(): Promise<void> {
    throw new TritonError("UNAVAILABLE", "explicit model load / unload is not allowed if polling is enabled");
  }

  unloadModel(): Promise<void> {
    return this.loadModel();
  }

  onChange(): () => void {
    return () => {};
  }

  async repositoryIndex() {
    return this.#models.map(({ name }) => ({ name, version: "1", state: "READY" }));
  }

  /** Answers a request with its input. */
  answer(request: InferenceRequest): void {
    const input = request.inputs.get("IN") ?? Tensor.fromElements("INT32", [0], new Int32Array(0));
    request.respond({
      modelName: request.modelName,
      modelVersion: "1",
      id: request.id,
      parameters: request.parameters,
      outputs: new Map([["OUT", input]]),
    });
  }

  metrics(): Promise<string> {
    return Promise.resolve("nv_up 1\n");
  }

  async metricsFor() {
    return { type: "text/plain; charset=utf-8", body: [Buffer.from(await this.metrics())] };
  }
}
