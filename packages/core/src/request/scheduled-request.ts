import type { Parameters, Tensor } from "@tritonjs/protocol";
import type { Deadline } from "../clock/deadline-queue.js";
import type { BatchKey } from "../config/options/variable-length-options.js";
import type { RequestTrace } from "../observe/trace/request-trace.js";
import { type InferenceRequest, NO_INPUTS } from "./inference-request.js";

import type { RequestInfo } from "./request-info.js";
import type { RequestHolder, ResponseGate } from "./request-observer.js";
import type { Reshape } from "./reshapes.js";
import type { SequenceInfo, SequencePlace } from "./sequence-info.js";

/**
 * A pending request `R` as schedulers see it: its content, and the notes of each stage that it passes. The notes are
 * fields of the request, and lists are linked through the requests themselves. So a request joins a list without an
 * allocation, and leaves it in O(1) from any position.
 */
export abstract class ScheduledRequest<R> implements RequestInfo {
  // Written by validation.
  /** Tensors as the model sees them. Emptied when the request is cancelled before it runs. */
  inputs: ReadonlyMap<string, Tensor>;
  /** Rows along the batch axis; 0 for a model without one. */
  batchSize = 0;
  /** Restores the shapes that the client expects, for a model that returns outputs in other shapes. */
  reshapeOutputs: Reshape | undefined = undefined;

  // Written by the model that accepted the request.
  /** When the request reached the scheduler, on the model's clock in milliseconds. */
  queueStart = 0;
  /** Neighbours among the requests that the model has not answered. */
  nextInflight: R | undefined = undefined;
  previousInflight: R | undefined = undefined;
  /** Ends the request when its deadline passes. */
  deadlineTimer: Deadline | undefined = undefined;

  // Written by the holder of the request while it waits.
  holder: RequestHolder<R> | undefined = undefined;
  /** Neighbours in a request queue. */
  next: R | undefined = undefined;
  previous: R | undefined = undefined;
  /** Fires when the request has waited as long as the policy of its queue allows. */
  queueDeadline: Deadline | undefined = undefined;

  // Written by batchers.
  /**
   * Time at which its batcher got the request, if later than the scheduler: requests of a sequence wait for each other.
   */
  batcherStart: number | undefined = undefined;
  /** Group of the request, for models that batch by a key: only requests with equal keys share a batch. */
  batchKey: BatchKey | undefined = undefined;
  /** Share of the request in the cost of its batch, where the cost of batches is bounded. */
  batchCost = 0;
  /** Holds answers back, for a batcher that keeps their order. */
  gate: ResponseGate | undefined = undefined;

  // Written by the scheduler of sequences.
  /** Set when the request leaves for an instance. */
  sequence: SequenceInfo | undefined = undefined;
  #place: SequencePlace | undefined = undefined;

  #given: InferenceRequest;

  constructor(given: InferenceRequest) {
    this.#given = given;
    this.inputs = given.inputs;
  }

  /** The request as its sender made it. It has no tensors once it was cancelled before it ran. */
  get given(): InferenceRequest {
    return this.#given;
  }

  get id(): string {
    return this.#given.id;
  }

  get modelName(): string {
    return this.#given.modelName;
  }

  get requestedOutputs(): readonly string[] {
    return this.#given.requestedOutputs;
  }

  get parameters(): Parameters {
    return this.#given.parameters;
  }

  get priority(): number {
    return this.#given.priority;
  }

  get queueTimeoutMicroseconds(): number {
    return this.#given.queueTimeoutMicroseconds;
  }

  get deadline(): number | undefined {
    return this.#given.deadline;
  }

  get ready(): boolean {
    return this.#given.ready;
  }

  get callers(): readonly string[] {
    return this.#given.callers;
  }

  get trace(): RequestTrace | undefined {
    return this.#given.trace;
  }

  get traceparent(): string | undefined {
    return this.#given.trace?.traceparent;
  }

  get logPrefix(): string {
    return this.#given.logPrefix;
  }

  /**
   * Position of the request in its sequence. It is the sender's, unless a scheduler makes an iterative sequence of the
   * request.
   */
  get place(): SequencePlace {
    return this.#place ?? this.#given;
  }

  set place(place: SequencePlace) {
    this.#place = place;
  }

  get correlationId(): bigint | string | undefined {
    return this.place.correlationId;
  }

  get sequenceStart(): boolean {
    return this.place.sequenceStart;
  }

  get sequenceEnd(): boolean {
    return this.place.sequenceEnd;
  }

  /** Rows that count towards a batch; 1 for a request without a batch axis. */
  get rows(): number {
    return this.batchSize > 0 ? this.batchSize : 1;
  }

  /** Tells the sender that no executor reads the inputs any more. A trace may keep them. */
  inputsUsed(): void {
    if (this.trace !== undefined) return;
    try {
      this.#given.onInputsUsed?.();
    } catch (error) {
      // It must not affect the other requests of the batch.
      process.emitWarning(error instanceof Error ? error : String(error));
    }
  }

  /** Calls `fn` in the asynchronous context of the caller. */
  runInContext<T>(fn: () => T): T {
    return this.#given.runInContext(fn);
  }

  /** Releases the tensors. */
  protected dropInputs(): void {
    this.inputs = NO_INPUTS;
    this.#given = this.#given.withoutInputs();
  }
}
