import { type ModelConfig, type Shape, sameShape, type Tensor, type TritonError } from "@tritonjs/protocol";
import { compareBytes } from "#host";
import type { BatchKey } from "../config/model-options.js";
import type { CutReason } from "../observe/statistics.js";
import { costOf, type InferenceRequest, type RequestHolder, startOf } from "../request/inference-request.js";
import { LinkedList } from "../system/collections.js";
import type { Tensors } from "./batch-tensors.js";

/**
 * Requests that run together. A payload grows until an instance takes it.
 *
 * ```
 * forming --enqueue--> queued --an instance takes it, or its last request leaves--> taken
 *    ^  requests join   ^
 * ```
 */
export class Payload implements RequestHolder {
  state: "forming" | "queued" | "taken" = "forming";
  /** True if no more requests join it, so that an instance may take it while it is still busy. */
  complete = false;
  /** True if the requests behind it do not fit, so no other payload may be merged into it. */
  saturated = false;
  /** Arrival of its oldest request, in milliseconds on the model's clock. */
  oldestQueueStart = Number.POSITIVE_INFINITY;
  /** Inputs in which all its requests must agree; undefined if none are compared. */
  requiredEqual: RequiredEqualInputs | undefined;
  /** Reason why it has no more requests, if a batcher formed it. */
  cut: CutReason | undefined;
  maxCost = Number.POSITIVE_INFINITY;
  /** Called when its last request is cancelled while the payload waits. */
  onEmpty: ((payload: Payload) => void) | undefined;
  next: Payload | undefined;
  previous: Payload | undefined;
  #waiting = new LinkedList<InferenceRequest>();
  /** Its requests once an instance has them: links would keep all of them while one is referenced. */
  #taken: readonly InferenceRequest[] | undefined;
  batchSize = 0;
  cost = 0;

  get isQueue(): boolean {
    return this.state !== "taken";
  }

  get requests(): readonly InferenceRequest[] {
    return this.#taken ?? this.#waiting.all();
  }

  /** Gives the requests to an instance, which runs them. None leaves or joins any more. */
  take(): readonly InferenceRequest[] {
    this.#taken = this.#release();
    return this.#taken;
  }

  get requestCount(): number {
    return this.#taken?.length ?? this.#waiting.size;
  }

  add(request: InferenceRequest): void {
    this.#waiting.push(request);
    this.batchSize += request.rows;
    this.cost += costOf(request);
    this.oldestQueueStart = Math.min(this.oldestQueueStart, startOf(request));
    request.holder = this;
  }

  /** Removes a waiting request that was cancelled, which makes its rows available. */
  remove(request: InferenceRequest): void {
    this.#waiting.remove(request);
    this.batchSize -= request.rows;
    this.cost -= costOf(request);
    if (this.#waiting.size === 0) this.onEmpty?.(this);
  }

  accepts(other: Payload): boolean {
    const first = other.#waiting.head!;
    if (this.#key !== other.#key || this.cost + other.cost > this.maxCost) return false;
    return this.requiredEqual === undefined || this.requiredEqual.holdsFor(first.inputs);
  }

  absorb(other: Payload): void {
    const requests = other.#release();
    other.batchSize = 0;
    other.cost = 0;
    for (const request of requests) this.add(request);
    this.cut = other.cut;
  }

  #release(): readonly InferenceRequest[] {
    const requests = this.#waiting.all();
    for (const request of requests) this.#waiting.remove(request);
    return requests;
  }

  get #key(): BatchKey | undefined {
    return this.#waiting.head?.extra?.key;
  }

  fail(error: TritonError): void {
    for (const request of this.requests) request.cancel(error);
  }
}

export const NO_PAYLOAD = new Payload();
NO_PAYLOAD.state = "taken";

/**
 * Determines the inputs of a model that must agree between the requests of one batch. Validation already ensures that
 * fixed dimensions agree. Compared are inputs with a variable dimension (unless ragged batching is allowed), the
 * content of shape tensors, and, with optional inputs, the set of inputs.
 */
export class EqualInputsRule {
  readonly #shapes = new Set<string>();
  readonly #contents = new Set<string>();
  readonly #comparesNames: boolean;

  /**
   * @param padded inputs that are padded to one shape when the batch is made
   * @param mixed true if requests with different optional inputs may share a batch
   */
  constructor(config: ModelConfig, padded?: ReadonlySet<string>, mixed = false) {
    for (const input of config.input) {
      if (input.isShapeTensor) this.#contents.add(input.name);
      else if (!input.allowRaggedBatch && input.dims.includes(-1) && !padded?.has(input.name)) {
        this.#shapes.add(input.name);
      }
    }
    for (const { inputName, dims } of config.sequenceBatching?.state ?? []) {
      if (dims.includes(-1)) this.#shapes.add(inputName);
    }
    this.#comparesNames = !mixed && config.input.some((input) => input.optional);
  }

  /** False when any two requests may share a batch. */
  get compares(): boolean {
    return this.comparesShapes || this.#comparesNames;
  }

  /** True if shapes are compared: then any new request may end a batch. */
  get comparesShapes(): boolean {
    return this.#shapes.size > 0 || this.#contents.size > 0;
  }

  /** Requirements for a batch whose first request has these inputs. */
  startWith(first: Tensors): RequiredEqualInputs | undefined {
    return this.compares
      ? new RequiredEqualInputs(first, this.#shapes, this.#contents, this.#comparesNames)
      : undefined;
  }
}

/** Requirements of the first request of a batch for the others. Holds shapes, not the tensors. */
export class RequiredEqualInputs {
  readonly #names: ReadonlySet<string> | undefined;
  readonly #rowShapes = new Map<string, Shape>();
  readonly #contents = new Map<string, Tensor>();

  constructor(
    first: Tensors,
    shapes: ReadonlySet<string>,
    contents: ReadonlySet<string>,
    comparesNames: boolean,
  ) {
    this.#names = comparesNames ? new Set(first.keys()) : undefined;
    for (const [name, tensor] of first) {
      if (shapes.has(name)) this.#rowShapes.set(name, rowShape(tensor));
      if (contents.has(name)) this.#contents.set(name, tensor);
    }
  }

  holdsFor(inputs: Tensors): boolean {
    if (this.#names !== undefined) {
      if (inputs.size !== this.#names.size) return false;
      for (const name of inputs.keys()) if (!this.#names.has(name)) return false;
    }
    for (const [name, shape] of this.#rowShapes) {
      if (!sameShape(shape, rowShape(inputs.get(name)!))) return false;
    }
    for (const [name, content] of this.#contents) {
      if (!sameContent(content, inputs.get(name)!)) return false;
    }
    return true;
  }
}

function rowShape(tensor: Tensor): Shape {
  return tensor.shape.slice(1);
}

function sameContent(a: Tensor, b: Tensor): boolean {
  return sameShape(a.shape, b.shape) && compareBytes(a.bytes, b.bytes) === 0;
}
