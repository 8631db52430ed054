import type {
  InferOptions,
  InputValuesOf,
  Isolation,
  ModelConfig,
  ModelMetadata,
  ModelStatisticsReport,
  ResultOf,
  TensorSpec,
} from "@tritonjs/protocol";

import type { InstancePlacement } from "../config/placement/instances.js";

import type { QueueSnapshot } from "../model/queue-snapshot.js";

import type { InstanceChange } from "./instance-changes.js";

/** How one instance of a model is. */
export interface InstanceStatus extends InstancePlacement {
  /** Where it runs; undefined for a backend that does not say. */
  readonly isolation: Isolation | undefined;
  /** Loaded, and given no requests. */
  readonly passive: boolean;
  /** Memory that it held after its last batch, for groups that watch it: see `recycle`. */
  readonly memoryBytes: number | undefined;
  /** Loaded and able to take a batch. */
  readonly healthy: boolean;
  readonly busy: boolean;
  /**
   * What there is to say about the loaded model: `executionProvider` of an ONNX model, `pid` of an instance with
   * isolation `process`.
   */
  readonly details: Readonly<Record<string, string>>;
}

/**
 * A bound model. Works without `serve()`: calls go through the same checks, queue and batcher as those over a
 * transport.
 *
 * @example
 * ```ts
 * const { y } = await linear.inferSample({ x: [1, 2] });             // y: ndarray of shape [3]
 * const batch = await linear.inferBatch({ x: [[1, 2], [3, 4]] });    // batch.y: ndarray of shape [2, 3]
 * ```
 */
export interface ModelHandle<I extends readonly TensorSpec[], O extends readonly TensorSpec[]> {
  readonly name: string;
  readonly version: number;
  /**
   * Infers with whole tensors: with the batch axis when the model has one.
   *
   * @throws TritonError INVALID_ARG for inputs that do not fit, UNAVAILABLE when the model cannot take them or the
   * time is over, CANCELLED when `signal` aborts, and what the model throws (INTERNAL unless it says otherwise).
   */
  infer(inputs: InputValuesOf<I>, options?: InferOptions): Promise<ResultOf<O>>;
  /** Infers one sample: a model with a batch axis gets one row, and the results come without the axis. */
  inferSample(inputs: InputValuesOf<I>, options?: InferOptions): Promise<ResultOf<O>>;
  /** Infers a batch of rows; throws INVALID_ARG for a model without a batch axis. */
  inferBatch(inputs: InputValuesOf<I>, options?: InferOptions): Promise<ResultOf<O>>;
  /**
   * The responses to one request, for decoupled models (others give one). The model makes no more than are read;
   * leaving the loop gives the request up.
   *
   * @example
   * ```ts
   * for await (const { token } of model.stream({ prompt: ["hello"] })) show(token);
   * ```
   */
  stream(inputs: InputValuesOf<I>, options?: InferOptions): AsyncGenerator<ResultOf<O>, void, void>;
  /** Resolves when every instance is loaded; rejects when loading failed. */
  ready(): Promise<void>;
  metadata(): ModelMetadata;
  config(): ModelConfig;
  statistics(): ModelStatisticsReport;
  /**
   * What the requests of the model are waiting for: requests by priority level, batches, instances, and why the last
   * batches were cut. Reads only, and costs little.
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
   * Changes the instances while they serve: to another number of the first group, or to other groups. Those that fit
   * stay, missing ones are loaded before this resolves, and those that are too many end when they, and the sequences
   * that they hold, are done. No request is lost.
   *
   * @throws TritonError INVALID_ARG for groups that cannot be, UNAVAILABLE unless the model is ready, and what loading
   * an instance throws; then nothing has changed.
   * @example
   * ```ts
   * await model.updateInstances(4);
   * ```
   */
  updateInstances(instances: InstanceChange): Promise<void>;
  /** Takes the model out of service: requests at hand finish, then its instances stop. */
  unbind(): Promise<void>;
}
