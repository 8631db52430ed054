import {
  type DataType,
  elementByteSize,
  elementCount,
  encodeBytes,
  errorFor,
  fromConfigDataType,
  isDecoupled,
  type ModelConfig,
  type ModelWarmup,
  shapeToString,
  Tensor,
  TritonError,
} from "@tritonjs/protocol";
import { dataFilesOf, randomFillSync, readFileNow } from "#host";
import { BatchLayout } from "../batch/batch-layout.js";
import { Payload } from "../batch/payload.js";
import { UserErrors } from "../callback/callback-error.js";
import type { CallModels } from "../callback/infer-func.js";
import { instanceDevice } from "../callback/instance-device.js";
import {
  hostPolicyOf,
  instanceSignature,
  type PlannedInstance,
  planInstances,
} from "../config/instance-groups.js";
import { sequenceTensors } from "../config/sequence-batching.js";
import { InstanceGroup } from "../instance/instance-group.js";
import { type InstanceModel, ModelInstance } from "../instance/model-instance.js";
import type { Log } from "../observe/log.js";
import type { ModelStatistics } from "../observe/statistics.js";
import { InferenceRequest, type RequestSender } from "../request/inference-request.js";
import { OutputChecker } from "../request/inference-response.js";
import type { RequestValidator } from "../request/request-validator.js";
import type { AroundScheduling } from "../scheduler/around-scheduling.js";
import { asWork, type Clock } from "../system/clock.js";
import type { ReadDataFile } from "../system/files.js";
import type { ModelPlan, ModelServer } from "./model-server.js";

export interface InstanceUpdate {
  readonly removed: Promise<void>;
}

/** Milliseconds that a worn instance keeps working after a failed replacement, before the next attempt. */
const RETRY_REPLACEMENT_MS = 30_000;

/**
 * The instances of a model version while it serves. Their number may change, and worn ones are replaced. New instances
 * are loaded and warm before old ones get no more requests. Old instances end when their work is done.
 */
export class LiveInstances implements InstanceModel {
  readonly group: InstanceGroup;
  readonly modelName: string;
  readonly modelVersion: string;
  readonly decoupled: boolean;
  readonly iterative: boolean;
  readonly clock: Clock;
  readonly outputNames: readonly string[];
  readonly callModels: CallModels;
  readonly layout: BatchLayout | undefined;
  readonly userErrors: UserErrors;
  readonly #log: Log;
  readonly #checker: OutputChecker;
  readonly #readFile: ReadDataFile;
  config: ModelConfig;
  /** The last change; changes are made one at a time. */
  #changes: Promise<unknown> = Promise.resolve();
  readonly #leaving = new Set<ModelInstance>();
  /** True while the model is on disk only. */
  #isAway: boolean;

  /**
   * Makes all instances that the configuration asks for; an ensemble has none.
   *
   * @param isAway true for a model that has no instances until `arrive`
   * @param around makes the instances of a version whose scheduling an extension stands around
   */
  constructor(
    private readonly plan: ModelPlan,
    private readonly server: ModelServer,
    readonly statistics: ModelStatistics,
    private readonly validator: RequestValidator,
    isAway: boolean,
    private readonly around: AroundScheduling | undefined,
  ) {
    this.#isAway = isAway;
    const { name, version, config, directory, strict, variableLength } = plan;
    this.modelName = name;
    this.modelVersion = String(version);
    this.decoupled = isDecoupled(config);
    this.iterative = config.sequenceBatching?.iterativeSequence ?? false;
    this.clock = server.clock;
    this.#log = server.log.of("backend_model_instance");
    this.userErrors = new UserErrors(this.#log, name, this.modelVersion);
    this.outputNames = config.output.map((output) => output.name);
    this.callModels = server.callModels;
    const layout = new BatchLayout(config, variableLength?.padding);
    this.layout = layout.isPlain ? undefined : layout;
    this.#checker = new OutputChecker(config, strict);
    this.#readFile = directory === undefined ? readFileNow : dataFilesOf(directory, "warmup");
    this.config = config;
    this.group = new InstanceGroup(
      isAway ? [] : this.#makeAll(config),
      around?.clock ?? server.clock,
      server.rateLimiter,
      (instance) => this.#replaceLater(instance),
    );
  }

  start(): Promise<void> {
    return asWork(async () => {
      await this.group.start();
      for (const instance of this.group.serving) await this.#warmUp(instance);
    });
  }

  /** Loads all instances of a model that has none. @throws TritonError of one that cannot be loaded: then it has none */
  arrive(): Promise<void> {
    return this.#next(async () => {
      if (!this.#isAway) return;
      const made = this.#makeAll(this.config);
      await this.#loadAll(made);
      for (const instance of made) this.group.join(instance);
      this.#isAway = false;
    });
  }

  /** Releases all instances once their batches are done. Requests wait in the queue until `arrive`. */
  leave(): Promise<void> {
    return this.#next(async () => {
      this.#isAway = true;
      await Promise.all(this.group.instances.map((instance) => this.#retire(instance)));
    });
  }

  /** Logs that an instance has crashed and cannot be restarted. The attempts continue. */
  restartFailed(instance: string, error: TritonError): void {
    this.#logFault(instance, "restarted", error);
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
      if (this.#isAway) {
        this.config = config;
        return { removed: Promise.resolve() };
      }
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
      await this.#loadAll(made);
      this.config = config;
      for (const instance of made) this.group.join(instance);
      const retired = free.map((instance) => this.#retire(instance));
      const removed = config.sequenceBatching === undefined ? retired : [];
      return { removed: Promise.all(removed).then(() => {}) };
    });
  }

  #replaceLater(worn: ModelInstance): void {
    worn.beingReplaced = true;
    void this.#next(() => this.#replace(worn)).catch((error) => {
      this.#logFault(worn.placement.name, "replaced", error);
      worn.staysUntil = this.clock.now() + RETRY_REPLACEMENT_MS;
      worn.beingReplaced = false;
    });
  }

  async #replace(worn: ModelInstance): Promise<void> {
    const isGone = () =>
      this.group.loader.stopped || !this.group.instances.includes(worn) || this.#leaving.has(worn);
    if (isGone()) return;
    const fresh = this.#make(worn.placement, this.config, this.group.instances.length);
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

  /** Loads instances before they join; releases all of them if one fails. */
  async #loadAll(made: readonly ModelInstance[]): Promise<void> {
    const results = await Promise.allSettled(made.map((instance) => this.#load(instance)));
    const failed = results.find((result) => result.status === "rejected");
    if (failed === undefined) return;
    await Promise.all(made.map((instance) => this.group.loader.release(instance)));
    throw TritonError.from(failed.reason);
  }

  async #load(instance: ModelInstance): Promise<void> {
    await asWork(async () => {
      await this.group.loader.load(instance);
      if (!instance.passive) await this.#warmUp(instance);
    });
    if (this.group.loader.stopped)
      throw errorFor("MODEL_STOPPED", "the model was stopped while its instances changed");
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

  #makeAll(config: ModelConfig): ModelInstance[] {
    const planned = planInstances(config);
    return planned.map((one) => this.#make(one, config, planned.length));
  }

  /** Makes an instance of a model of this configuration: one of `instanceCount`. */
  #make(placement: PlannedInstance, modelConfig: ModelConfig, instanceCount: number): ModelInstance {
    const { clock, metrics, control, gpus, hostPolicies } = this.server;
    const executor = this.plan.createExecutor({
      placement,
      info: {
        modelName: this.modelName,
        modelVersion: this.plan.version,
        modelConfig,
        instanceName: placement.name,
        instanceIndex: placement.index,
        device: instanceDevice(placement.kind, placement.deviceId, gpus),
      },
      checker: this.#checker,
      clock,
      instanceCount,
      hosting: placement.group.hosting ?? {},
      hostPolicy: hostPolicyOf(placement, hostPolicies),
      queuedRequests: () => this.statistics.pendingCount,
      ...{ log: this.#log, metrics, control, gpus },
    });
    return this.around?.instance(placement, executor, this) ?? new ModelInstance(placement, executor, this);
  }

  /** Logs that an instance cannot be replaced or restarted. No caller waits for that, and it is tried again. */
  #logFault(instance: string, change: "restarted" | "replaced", error: unknown): void {
    const { message } = TritonError.from(error);
    this.#log.error(
      `instance '${instance}' of model '${this.modelName}' version ${this.modelVersion} could not be ${change}: ` +
        message,
    );
    this.userErrors.whileLoading(error);
  }

  /**
   * Runs every warmup sample through an instance before it serves. The executions count in the statistics, as in Triton.
   *
   * @throws TritonError for the first sample that fails: the model is then not loaded.
   */
  async #warmUp(instance: ModelInstance): Promise<void> {
    for (const sample of this.config.modelWarmup) {
      for (let run = 0; run < Math.max(1, sample.count); run++) await this.#runSample(instance, sample);
    }
  }

  async #runSample(instance: ModelInstance, sample: ModelWarmup): Promise<void> {
    const { config } = this;
    const failures: TritonError[] = [];
    const requests = warmupRequests(config, sample, this.#readFile, {
      receive: (outcome) => void (TritonError.is(outcome) && failures.push(outcome)),
    });
    if (requests.length === 0) return;
    this.#log.verbose(
      1,
      `model '${config.name}' instance ${instance.placement.name} is running warmup sample '${sample.name}'`,
      { model: config.name, version: this.modelVersion },
    );
    const payload = new Payload();
    for (const request of requests) {
      const { inputs } = request;
      request.inputs = withoutControls(config, inputs);
      this.validator.validate(request);
      request.inputs = new Map([...inputs, ...request.inputs]);
      request.queueStart = this.clock.now();
      this.statistics.pendingCount++;
      payload.add(request);
    }
    const refusal = oversized(config, instance, requests.length);
    if (refusal === undefined) await instance.run(payload);
    else payload.fail(refusal);
    if (failures.length === 0) return;
    const texts = failures.map(({ message }) => `${message}; `).join("");
    throw errorFor("WARMUP_FAILED", `failed to run warmup sample '${sample.name}': ${texts}`, {
      cause: failures[0],
    });
  }
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

/** Requests, and bytes of an input, of a sample. */
const MOST_WARMUP_REQUESTS = 16_384;
const MOST_WARMUP_BYTES = 2 ** 30;

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
  sender: RequestSender,
): InferenceRequest[] {
  if (sample.batchSize === 0) return [];
  if (sample.batchSize > MOST_WARMUP_REQUESTS) {
    const text = `warmup sample '${sample.name}': expected a batch_size of at most ${MOST_WARMUP_REQUESTS}, got ${sample.batchSize}`;
    throw errorFor("WARMUP_FAILED", text);
  }
  const inputs = new Map(
    Object.entries(sample.inputs).map(([name, input]) => [
      name,
      warmupTensor(name, input, config.maxBatchSize > 0 && !isShapeTensor(config, name), readFile),
    ]),
  );
  return Array.from(
    { length: sample.batchSize },
    () => new InferenceRequest(config.name, { inputs }, sender),
  );
}

function isShapeTensor(config: ModelConfig, name: string): boolean {
  return config.input.some((input) => input.name === name && input.isShapeTensor);
}

function warmupTensor(name: string, input: WarmupInput, batched: boolean, readFile: ReadDataFile): Tensor {
  const datatype = fromConfigDataType(input.dataType);
  const open = `warmup setting expects all variable-size dimensions are specified for input '${name}'`;
  if (datatype === undefined) {
    throw errorFor("WARMUP_FAILED", `${open}, which has data type '${input.dataType}'`);
  }
  if (input.dims.includes(-1)) throw errorFor("WARMUP_FAILED", open);
  if (input.dims.some((dim) => dim < 0)) {
    const dims = shapeToString(input.dims);
    throw errorFor("WARMUP_FAILED", `tensor '${name}' contains an invalid dimension ${dims}`);
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
    throw errorFor("WARMUP_FAILED", text);
  }
  const size = count * (datatype === "BYTES" ? 16 : elementByteSize(datatype));
  if (size > MOST_WARMUP_BYTES) {
    const text = `${NO_ID}warmup input '${name}': expected at most ${MOST_WARMUP_BYTES} bytes, got ${size}`;
    throw errorFor("WARMUP_FAILED", text);
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
    throw errorFor(
      "WARMUP_FAILED",
      `${NO_ID}warmup setting expects ${expected} bytes, but the data provided from ${file}only has ` +
        `${bytes.byteLength} bytes`,
    );
  }
  return bytes.subarray(0, expected);
}
