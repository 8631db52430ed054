import { randomFillSync } from "node:crypto";
import {
  type DataType,
  elementByteSize,
  elementCount,
  encodeBytes,
  fromConfigDataType,
  isDecoupled,
  type ModelConfig,
  type ModelWarmup,
  shapeToString,
  statusText,
  Tensor,
  TritonError,
} from "@tritonjs/protocol";
import type { Registry } from "prom-client";
import { BatchLayout } from "../batch/batch-layout.js";
import { Payload } from "../batch/payload.js";
import type { CallModels } from "../callback/infer-func.js";
import {
  type HostPolicies,
  hostPolicyOf,
  instanceSignature,
  type PlannedInstance,
  planInstances,
} from "../config/instance-groups.js";
import { sequenceTensors } from "../config/sequence-batching.js";
import type { Executor, ExecutorContext, ModelControl } from "../instance/backend.js";
import { InstanceGroup } from "../instance/instance-group.js";
import { ModelInstance } from "../instance/model-instance.js";
import type { RateLimiter } from "../instance/rate-limiter.js";
import type { Log } from "../observe/log.js";
import type { ModelStatistics } from "../observe/statistics.js";
import { InferenceRequest, type ResponseHandler } from "../request/inference-request.js";
import { OutputChecker } from "../request/output-checker.js";
import type { RequestValidator } from "../request/request-validator.js";
import type { VariableLength } from "../scheduler/grouping-scheduler.js";
import type { Clock } from "../system/clock.js";
import type { ReadDataFile } from "../system/files.js";

/** Makes an instance of a model of this configuration: one of `count`. */
type MakeInstance = (planned: PlannedInstance, config: ModelConfig, count: number) => ModelInstance;

/** The parts of a model version that its instances use. */
interface LiveInstancesContext {
  readonly rateLimiter?: RateLimiter | undefined;
  readonly faults: ModelFaults;
}

/** Result of a change of instance groups. */
export interface InstanceUpdate {
  /** Resolves when the removed instances are released. */
  readonly removed: Promise<void>;
}

/** Milliseconds that a worn instance keeps working after a failed replacement, before the next attempt. */
const RETRY_REPLACEMENT_MS = 30_000;

/**
 * The instances of a model version while it serves. Their number may change, and worn ones are replaced. New instances
 * are loaded and warm before old ones get no more requests. Old instances end when their work is done.
 */
export class LiveInstances {
  readonly group: InstanceGroup;
  readonly #clock: Clock;
  readonly #make: MakeInstance;
  readonly #faults: ModelFaults;
  #config: ModelConfig;
  /** The last change; changes are made one at a time. */
  #changes: Promise<unknown> = Promise.resolve();
  #leaving = new Set<ModelInstance>();
  /** Warms an instance up; set by the owner. */
  warmUp: (instance: ModelInstance) => Promise<void> = async () => {};

  constructor(config: ModelConfig, clock: Clock, make: MakeInstance, context: LiveInstancesContext) {
    this.#config = config;
    this.#clock = clock;
    this.#make = make;
    this.#faults = context.faults;
    const planned = planInstances(config);
    this.group = new InstanceGroup(
      planned.map((one) => make(one, config, planned.length)),
      clock,
      context.rateLimiter,
      (instance) => this.#replaceLater(instance),
    );
  }

  /** The model's configuration with its present instance groups. */
  get config(): ModelConfig {
    return this.#config;
  }

  /** Loads all instances and warms them up. */
  async start(): Promise<void> {
    await this.group.start();
    for (const instance of this.group.serving) await this.warmUp(instance);
  }

  /**
   * Changes to the instance groups of another configuration, which must be equal in everything else. Instances that it
   * can use stay. Resolves when the new ones are ready. Surplus instances end when their work is done.
   *
   * @returns promise of the release of surplus instances; those of a sequence model keep their sequences and are not
   * waited for
   * @throws TritonError of an instance that cannot be loaded: then nothing has changed
   */
  update(config: ModelConfig): Promise<InstanceUpdate> {
    return this.#next(async () => {
      const free = this.group.instances.filter((instance) => !this.#leaving.has(instance));
      const planned = planInstances(config);
      const missing: PlannedInstance[] = [];
      for (const one of planned) {
        const signature = instanceSignature(one);
        const known = free.findIndex(({ placement }) => instanceSignature(placement) === signature);
        if (known < 0) missing.push(one);
        else free.splice(known, 1);
      }
      const made = missing.map((one) => this.#make(one, config, planned.length));
      const results = await Promise.allSettled(made.map((instance) => this.#load(instance)));
      const failed = results.find((result) => result.status === "rejected");
      if (failed !== undefined) {
        await Promise.all(made.map((instance) => this.group.loader.release(instance)));
        throw TritonError.from(failed.reason);
      }
      this.#config = config;
      for (const instance of made) this.group.join(instance);
      const retired = free.map((instance) => this.#retire(instance));
      const removed = config.sequenceBatching === undefined ? retired : [];
      return { removed: Promise.all(removed).then(() => {}) };
    });
  }

  #replaceLater(worn: ModelInstance): void {
    worn.beingReplaced = true;
    void this.#next(() => this.#replace(worn)).catch((error) => {
      this.#faults.replacementFailed(worn.placement.name, error);
      worn.staysUntil = this.#clock.now() + RETRY_REPLACEMENT_MS;
      worn.beingReplaced = false;
    });
  }

  async #replace(worn: ModelInstance): Promise<void> {
    const isGone = () =>
      this.group.loader.stopped || !this.group.instances.includes(worn) || this.#leaving.has(worn);
    if (isGone()) return;
    const fresh = this.#make(worn.placement, this.#config, this.group.instances.length);
    try {
      await this.#load(fresh);
    } catch (error) {
      await this.group.loader.release(fresh);
      if (this.group.loader.stopped) return;
      throw error;
    }
    this.group.join(fresh, worn);
    void this.#retire(worn);
  }

  async #load(instance: ModelInstance): Promise<void> {
    await this.group.loader.load(instance);
    if (!instance.passive) await this.warmUp(instance);
    if (this.group.loader.stopped)
      throw new TritonError("UNAVAILABLE", "the model was stopped while its instances changed", {
        reason: "MODEL_STOPPED",
      });
  }

  #retire(instance: ModelInstance): Promise<void> {
    this.#leaving.add(instance);
    return this.group.retire(instance).finally(() => this.#leaving.delete(instance));
  }

  #next<T>(change: () => Promise<T>): Promise<T> {
    const done = this.#changes.then(change);
    this.#changes = done.catch(() => {});
    return done;
  }
}

/** Makes the executor of one instance. */
export type ExecutorFactory = (context: ExecutorContext) => Executor;

/** Everything that the instances of a model are made from. */
interface InstancesInit {
  readonly name: string;
  readonly version: number;
  readonly config: ModelConfig;
  readonly clock: Clock;
  readonly statistics: ModelStatistics;
  readonly createExecutor: ExecutorFactory;
  readonly callModels: CallModels;
  /** Decides whose turn it is, over all models; undefined if any idle instance may run. */
  readonly rateLimiter?: RateLimiter | undefined;
  readonly hostPolicies?: HostPolicies | undefined;
  /** True if callbacks have to return ndarrays, without any conversion. */
  readonly strict?: boolean | undefined;
  /** Rules for batches of requests whose lengths differ. */
  readonly variableLength?: VariableLength | undefined;
  /** Log that models write to, and registry of their own metrics. */
  readonly log: Log;
  readonly metrics: () => Registry;
  /** Told when an instance cannot be restarted or replaced. */
  readonly faults: ModelFaults;
  /** The models of the repository, for models that load others. */
  readonly control?: ModelControl | undefined;
}

/** Creates all instances that the configuration asks for; an ensemble has none. */
export function createInstances(init: InstancesInit): LiveInstances {
  const { name, version, config, clock, statistics, createExecutor, callModels } = init;
  const checker = new OutputChecker(config, init.strict);
  const layout = new BatchLayout(config, init.variableLength?.padding);
  const owner = {
    modelName: name,
    modelVersion: String(version),
    decoupled: isDecoupled(config),
    iterative: config.sequenceBatching?.iterativeSequence ?? false,
    clock,
    statistics,
    outputNames: config.output.map((output) => output.name),
    callModels,
    layout: layout.isPlain ? undefined : layout,
    faults: init.faults,
  };
  const make: MakeInstance = (placement, modelConfig, instanceCount) => {
    const info = {
      modelName: name,
      modelVersion: version,
      modelConfig,
      instanceName: placement.name,
      instanceIndex: placement.index,
      device: { kind: placement.kind, id: placement.deviceId },
    };
    const hosting = placement.group.hosting ?? {};
    const nice = hostPolicyOf(placement, init.hostPolicies ?? {})?.nice;
    const { log, metrics, control } = init;
    const queuedRequests = () => statistics.pendingCount;
    const run = { placement, info, checker, clock, instanceCount, hosting, nice, queuedRequests };
    const context = { ...run, log, metrics, control };
    return new ModelInstance(placement, createExecutor(context), owner);
  };
  return new LiveInstances(config, clock, make, init);
}

/** The version whose failures {@link ModelFaults} logs. */
interface FaultyModel {
  readonly name: string;
  readonly version: number;
  /** Directory of a version of a repository, whose loader logs its failed loads. */
  readonly directory?: string | undefined;
  readonly log: Log;
}

/**
 * Logs why a model version, or an instance of it, cannot serve: one line at error level for each failure. No caller needs
 * to wait for the load. Without a logger each line is a warning of the process.
 */
export class ModelFaults {
  /** Set when the version is stopped while it loads: the end of that load is not a failure. */
  stopping = false;
  readonly #model: FaultyModel;

  constructor(model: FaultyModel) {
    this.#model = model;
  }

  /** Logs a failed load. @returns its reason for the repository index */
  loadFailed(error: unknown): string {
    const { name, version, directory, log } = this.#model;
    if (directory !== undefined) return statusText(error);
    if (!this.stopping) log.error(`failed to load '${name}' version ${version}: ${statusText(error)}`);
    return TritonError.from(error).message;
  }

  /** Logs that an ensemble of the program does not fit its members. The repository logs the same of its own ensembles. */
  unfit(reason: string): void {
    const { name, version, directory, log } = this.#model;
    if (directory !== undefined) return;
    log.error(`failed to load '${name}' version ${version}: Invalid argument: ${reason}`);
  }

  /** Logs that an instance has crashed and cannot be restarted. The attempts continue. */
  restartFailed(instance: string, error: TritonError): void {
    this.#instanceFailed(instance, "restarted", error);
  }

  /** Logs that an instance cannot be replaced by a new one. It continues to serve. */
  replacementFailed(instance: string, error: unknown): void {
    this.#instanceFailed(instance, "replaced", error);
  }

  #instanceFailed(instance: string, change: string, error: unknown): void {
    const { name, version, log } = this.#model;
    const { message } = TritonError.from(error);
    log.error(
      `instance '${instance}' of model '${name}' version ${version} could not be ${change}: ${message}`,
    );
  }
}

/**
 * Runs every warmup sample through an instance before it serves. The executions count in the statistics, as in Triton.
 *
 * @param readFile reads an `input_data_file`
 * @throws TritonError for the first sample that fails: the model is then not loaded.
 */
export async function warmUp(
  config: ModelConfig,
  instance: ModelInstance,
  validator: RequestValidator,
  statistics: ModelStatistics,
  now: () => number,
  readFile: ReadDataFile,
): Promise<void> {
  for (const sample of config.modelWarmup) {
    for (let run = 0; run < Math.max(1, sample.count); run++) {
      await runSample(config, instance, sample, validator, statistics, now, readFile);
    }
  }
}

async function runSample(
  config: ModelConfig,
  instance: ModelInstance,
  sample: ModelWarmup,
  validator: RequestValidator,
  statistics: ModelStatistics,
  now: () => number,
  readFile: ReadDataFile,
): Promise<void> {
  const failures: TritonError[] = [];
  const requests = warmupRequests(config, sample, readFile, (outcome) => {
    if (TritonError.is(outcome)) failures.push(outcome);
  });
  if (requests.length === 0) return;
  const payload = new Payload();
  for (const request of requests) {
    const { inputs } = request;
    request.inputs = withoutControls(config, inputs);
    validator.validate(request);
    request.inputs = new Map([...inputs, ...request.inputs]);
    request.queueStart = now();
    statistics.pendingCount++;
    payload.add(request);
  }
  const refusal = oversized(config, instance, requests.length);
  if (refusal === undefined) await instance.run(payload);
  else payload.fail(refusal);
  if (failures.length === 0) return;
  const texts = failures.map(({ message }) => `${message}; `).join("");
  throw new TritonError("INVALID_ARG", `failed to run warmup sample '${sample.name}': ${texts}`, {
    reason: "WARMUP_FAILED",
    cause: failures[0],
  });
}

/** Reason why an instance cannot run a batch of this size. Each request of a sample is one row. */
function oversized(
  { maxBatchSize }: ModelConfig,
  { executor, placement }: ModelInstance,
  size: number,
): TritonError | undefined {
  if (executor.takesAnyBatchSize || size === 1 || size <= maxBatchSize) return undefined;
  const text = `batch size ${size} for '${placement.name}', max allowed is ${maxBatchSize}`;
  return new TritonError("INTERNAL", text);
}

/** Removes the control tensors and states that a sample of a sequence model may have, and clients may not. */
function withoutControls(
  { sequenceBatching }: ModelConfig,
  inputs: ReadonlyMap<string, Tensor>,
): ReadonlyMap<string, Tensor> {
  const { inputs: controls } = sequenceTensors(sequenceBatching);
  return new Map([...inputs].filter(([name]) => !controls.includes(name)));
}

/** Prefix of Triton's error texts for the request of a sample, which has no id. */
const NO_ID = "[request id: <id_unknown>] ";

type WarmupInput = ModelWarmup["inputs"][string];

/**
 * Makes the requests of one warmup sample: `batchSize` requests of one row each, which run as one batch.
 *
 * @param readFile reads an `input_data_file`
 * @throws TritonError INVALID_ARG or INTERNAL if the data of an input cannot be made.
 */
export function warmupRequests(
  config: ModelConfig,
  sample: ModelWarmup,
  readFile: ReadDataFile,
  onResponse: ResponseHandler,
): InferenceRequest[] {
  if (sample.batchSize === 0) return [];
  const inputs = new Map(
    Object.entries(sample.inputs).map(([name, input]) => [
      name,
      warmupTensor(name, input, config.maxBatchSize > 0 && !isShapeTensor(config, name), readFile),
    ]),
  );
  return Array.from(
    { length: sample.batchSize },
    () => new InferenceRequest({ inputs }, config.name, onResponse),
  );
}

function isShapeTensor(config: ModelConfig, name: string): boolean {
  return config.input.some((input) => input.name === name && input.isShapeTensor);
}

function warmupTensor(name: string, input: WarmupInput, batched: boolean, readFile: ReadDataFile): Tensor {
  const datatype = fromConfigDataType(input.dataType);
  const open = `warmup setting expects all variable-size dimensions are specified for input '${name}'`;
  if (datatype === undefined) {
    throw new TritonError("INVALID_ARG", `${open}, which has data type '${input.dataType}'`, {
      reason: "WARMUP_FAILED",
    });
  }
  if (input.dims.includes(-1)) throw new TritonError("INVALID_ARG", open, { reason: "WARMUP_FAILED" });
  if (input.dims.some((dim) => dim < 0)) {
    const dims = shapeToString(input.dims);
    throw new TritonError("INVALID_ARG", `tensor '${name}' contains an invalid dimension ${dims}`, {
      reason: "WARMUP_FAILED",
    });
  }
  const bytes = warmupBytes(name, datatype, elementCount(input.dims), input, readFile);
  return Tensor.fromBytes(datatype, batched ? [1, ...input.dims] : input.dims, bytes);
}

function warmupBytes(
  name: string,
  datatype: DataType,
  count: number,
  { inputData, inputDataFile: file, randomData, zeroData }: WarmupInput,
  readFile: ReadDataFile,
): Uint8Array {
  if (inputData !== undefined) return new Uint8Array(inputData);
  if (file !== undefined) return fileBytes(file, readFile(file), datatype, count);
  if (randomData === undefined && zeroData === undefined) {
    const text = `${NO_ID}warmup setting expects input '${name}' to have input_data_type set`;
    throw new TritonError("INVALID_ARG", text, { reason: "WARMUP_FAILED" });
  }
  // Random text would have a random length, so BYTES are empty elements in either case.
  if (datatype === "BYTES") return encodeBytes(Array.from({ length: count }, () => new Uint8Array()));
  const bytes = new Uint8Array(count * elementByteSize(datatype));
  return randomData ? randomFillSync(bytes) : bytes;
}

function fileBytes(file: string, bytes: Uint8Array, datatype: DataType, count: number): Uint8Array {
  if (datatype === "BYTES") return bytes;
  const expected = count * elementByteSize(datatype);
  if (bytes.byteLength < expected) {
    throw new TritonError(
      "INVALID_ARG",
      `${NO_ID}warmup setting expects ${expected} bytes, but the data provided from ${file}only has ` +
        `${bytes.byteLength} bytes`,
      { reason: "WARMUP_FAILED" },
    );
  }
  return bytes.subarray(0, expected);
}
