import {
  assertOptions,
  type CallByPosition,
  errorFor,
  type InferOptions,
  type InputValuesOf,
  type Isolation,
  type ModelConfig,
  type ModelMetadata,
  type ModelStatisticsReport,
  optionTypes,
  type ResultOf,
  readCall,
  type servedTensors,
  type TensorSpec,
  valuesByName,
} from "@tritonjs/protocol";
import type { Gpus } from "../config/gpus.js";
import type { InstancePlacement } from "../config/instance-groups.js";
import { modelMetadata } from "../config/model-metadata.js";
import type { CallBatchAxis } from "../in-process/in-process-tensors.js";
import { inferInProcess } from "../in-process/infer-in-process.js";
import { streamInProcess } from "../in-process/stream-in-process.js";
import type { ModelPlan } from "../model/model-server.js";
import type { ModelVersion } from "../model/model-version.js";
import type { ModelRegistry } from "../model/registry.js";
import type { ModelState, QueueSnapshot } from "../model/version-status.js";
import { reportStatistics } from "../observe/statistics-report.js";
import type { RebindOptions } from "./bind-options.js";
import { changedGroups, type InstanceChange } from "./plan-executors.js";

/** Status of a bound model. */
export interface ModelStatus {
  readonly version: number;
  /** READY while the model takes requests. */
  readonly state: ModelState;
  /** Why the model is UNAVAILABLE: the error of its load, or "unloaded". Empty if there is no reason. */
  readonly reason: string;
}

/** Status of one instance of a model. */
export interface InstanceStatus extends InstancePlacement {
  /** Where the instance runs. Undefined for a backend that does not report it. */
  readonly isolation: Isolation | undefined;
  /** True for an instance that is loaded but gets no requests. */
  readonly passive: boolean;
  /** Bytes of memory that the instance held after its last batch, for groups that watch memory: see `recycle`. */
  readonly memoryBytes: number | undefined;
  /** True if the instance is loaded and can take a batch. */
  readonly healthy: boolean;
  readonly busy: boolean;
  /** Details of the loaded model, such as `executionProvider` of an ONNX model and `pid` of a process. */
  readonly details: Readonly<Record<string, string>>;
}

/**
 * A bound model. It works without `serve()`: calls pass through the same checks, queue and batcher as requests from a
 * transport.
 *
 * @example
 * ```ts
 * const { y } = await linear.inferSample({ x: [1, 2] });             // y: ndarray of shape [3]
 * const batch = await linear.inferBatch({ x: [[1, 2], [3, 4]] });    // batch.y: ndarray of shape [2, 3]
 * const same = await linear.inferBatch([[1, 2], [3, 4]]);            // tensors by position
 * ```
 *
 * @typeParam M name of the model, by which `createClient` of `@tritonjs/client` knows it
 */
export interface ModelHandle<
  I extends readonly TensorSpec[],
  O extends readonly TensorSpec[],
  M extends string = string,
> {
  readonly [servedTensors]?: { readonly inputs: I; readonly outputs: O };
  readonly name: M;
  readonly version: number;
  /** Infers with tensors in the order of the model's inputs: `infer(a, b)`, `infer(a, b, options)`. */
  infer(...call: CallByPosition<I>): Promise<ResultOf<O>>;
  /**
   * Infers with whole tensors: with the batch axis if the model has one.
   *
   * @throws TritonError INVALID_ARG for inputs that do not fit, UNAVAILABLE when the model cannot take the request or
   * the time limit is over, CANCELLED when `signal` aborts, and the error that the model throws (INTERNAL unless it has
   * a code of its own).
   */
  infer(inputs: InputValuesOf<I>, options?: InferOptions): Promise<ResultOf<O>>;
  inferSample(...call: CallByPosition<I>): Promise<ResultOf<O>>;
  /** Infers one sample. A model with a batch axis gets one row, and the results are returned without the axis. */
  inferSample(inputs: InputValuesOf<I>, options?: InferOptions): Promise<ResultOf<O>>;
  inferBatch(...call: CallByPosition<I>): Promise<ResultOf<O>>;
  /**
   * Infers a batch of rows.
   *
   * @throws TritonError INVALID_ARG for a model without a batch axis.
   */
  inferBatch(inputs: InputValuesOf<I>, options?: InferOptions): Promise<ResultOf<O>>;
  stream(...call: CallByPosition<I>): AsyncGenerator<ResultOf<O>, void, void>;
  /**
   * Streams the responses to one request of a decoupled model. Other models give one response. Back-pressure holds: the
   * model makes no more responses than are read. Leaving the loop cancels the request.
   *
   * @example
   * ```ts
   * for await (const { token } of model.stream({ prompt: ["hello"] })) show(token);
   * ```
   */
  stream(inputs: InputValuesOf<I>, options?: InferOptions): AsyncGenerator<ResultOf<O>, void, void>;
  /**
   * Resolves when every instance is loaded, for an ensemble those of all members. Rejects when loading failed. It does
   * not wait for models that a callback calls: `triton.ready()` waits for all models.
   */
  ready(): Promise<void>;
  /**
   * The state of the model, and the reason if it could not be loaded. It only reads: `ready()` waits.
   *
   * @example
   * ```ts
   * const { state, reason } = model.status(); // "UNAVAILABLE", "model 'm': cannot import the module ..."
   * ```
   */
  status(): ModelStatus;
  metadata(): ModelMetadata;
  config(): ModelConfig;
  statistics(): ModelStatisticsReport;
  /**
   * Snapshot of the queue: requests by priority level, batches, instances, and the reasons why the last batches were
   * cut. It only reads, and costs little.
   *
   * @example
   * ```ts
   * const { queued, levels, recentCuts } = model.queue();
   * console.log(queued, levels[0]?.oldestAgeMicroseconds, recentCuts[0]?.reason); // 3 1250 DELAY
   * ```
   */
  queue(): QueueSnapshot;
  instances(): InstanceStatus[];
  /**
   * Changes the instances while the model serves: to another count for the first group, or to other groups. Instances
   * that fit the new groups stay. Missing ones are loaded before the promise resolves. Surplus ones end when their
   * requests and sequences are done. No request is lost.
   *
   * @throws TritonError INVALID_ARG for impossible groups, UNAVAILABLE unless the model is ready, and errors from
   * loading an instance. After an error nothing has changed.
   * @example
   * ```ts
   * await model.updateInstances(4);
   * ```
   */
  updateInstances(instances: InstanceChange): Promise<void>;
  /**
   * Changes the model while it serves: its batcher, its instances and where they run, its function or backend. The new
   * instances are loaded before the old ones get no more requests. Requests that wait keep their order and the time of
   * their arrival, and open sequences stay on the instances that have them. No request is lost.
   *
   * @throws TritonError INVALID_ARG for options that are not valid, for other inputs or outputs than before, and for an
   * ensemble; UNAVAILABLE unless the model is ready; and errors from loading an instance. After an error nothing has
   * changed.
   * @example
   * ```ts
   * await model.rebind({ inferFunc: new URL("./model.js", import.meta.url), config: { maxBatchSize: 64 } });
   * ```
   */
  rebind(change: RebindOptions): Promise<void>;
  /** Takes the model out of service. Requests in flight finish, then its instances stop. */
  unbind(): Promise<void>;
}

const REBIND_TYPES = optionTypes<RebindOptions>({
  // The values are checked as those of `bind`.
  inferFunc: "any",
  config: "any",
  modelConfig: "any",
  strict: "any",
  onSequenceEvict: "any",
});

const NO_OPTIONS: InferOptions = {};

interface HandleServer {
  readonly registry: ModelRegistry;
  readonly gpus: Gpus;
  readonly drainTimeoutMs: number;
}

export function modelHandle<
  I extends readonly TensorSpec[],
  O extends readonly TensorSpec[],
  M extends string,
>(
  model: ModelVersion,
  server: HandleServer,
  replan: (change: RebindOptions) => ModelPlan,
): ModelHandle<I, O, M> {
  const { gpus } = server;
  const { name, version, config } = model;
  const infer = (given: readonly unknown[], axis: CallBatchAxis) => {
    try {
      const call = readCall<InferOptions>(name, given);
      const inputs = valuesByName(name, config.input, call);
      const answer = inferInProcess(model, inputs, call.options ?? NO_OPTIONS, axis);
      return answer as Promise<unknown> as Promise<ResultOf<O>>;
    } catch (error) {
      return Promise.reject(error);
    }
  };
  return {
    name: name as M,
    version,
    infer: (...given: readonly unknown[]) => infer(given, "given"),
    inferSample: (...given: readonly unknown[]) => infer(given, "added"),
    async inferBatch(...given: readonly unknown[]) {
      if (model.config.maxBatchSize === 0) {
        throw errorFor(
          "INVALID_INPUT",
          `cannot send a batch to model '${name}', which does not support batching: use infer() or inferSample()`,
        );
      }
      return infer(given, "given");
    },
    stream: (...given: readonly unknown[]) => {
      const call = readCall<InferOptions>(name, given);
      const inputs = valuesByName(name, config.input, call);
      const answers = streamInProcess(model, inputs, call.options ?? NO_OPTIONS) as AsyncGenerator<unknown>;
      return answers as AsyncGenerator<ResultOf<O>, void, void>;
    },
    ready: () => model.ready,
    status: () => ({ version, state: model.state, reason: model.reason }),
    metadata: () => modelMetadata(config, [version]),
    config: () => model.config,
    statistics: () => reportStatistics(name, version, model.statistics),
    queue: () => model.queue(),
    instances: () =>
      model.instances.instances.map(({ placement, passive, healthy, busy, executor }) => ({
        name: placement.name,
        index: placement.index,
        kind: placement.kind,
        deviceId: placement.deviceId,
        isolation: executor.isolation,
        passive,
        healthy,
        busy,
        memoryBytes: executor.memoryBytes,
        details: executor.details,
      })),
    updateInstances: async (change) => {
      const { instanceProblems = () => [] } = model.plan;
      await model.updateInstances(changedGroups(change, model.config, gpus, instanceProblems));
    },
    rebind: async (change) => {
      assertOptions(`rebind() of model '${name}'`, change, REBIND_TYPES);
      await (await model.migrate(replan(change))).removed;
    },
    unbind: async () => {
      await model.unload(server.drainTimeoutMs);
      server.registry.remove(model);
    },
  };
}
