import type { Clock, ModelVersion } from "@tritonjs/core/extension";
import { copyTensor, InferenceRequest, type RequestObserver } from "@tritonjs/core/internal";
import { type Tensor, TritonError } from "@tritonjs/protocol";
import { type ShadowOptions, shadowParameters } from "./rollout-options.js";
import { RoutedCall, type StepProgress } from "./step-progress.js";
import type { VerdictEvidence } from "./verdict.js";

type Tensors = ReadonlyMap<string, Tensor>;

/**
 * Copies of requests for the new version. A copy is made of each n-th request when it arrives, and sent after the old
 * version has answered. It is dropped if a request waits, or if either version has no idle instance.
 *
 * ```
 * request --> old version --> answer to the client
 *    |                           |
 *    +-- copy of the inputs      +-- copy of the outputs
 *                                |
 *            instances are idle: the copy --> new version --> compare, drop
 * ```
 */
export class ShadowRequests {
  #count = 0;
  #inFlight = 0;
  /** Time before which no copy runs on this thread, so that copies keep to their part of its time. */
  #notBefore = Number.NEGATIVE_INFINITY;

  constructor(
    private readonly options: Required<ShadowOptions>,
    private readonly clock: Clock,
    private readonly evidence: VerdictEvidence,
    private readonly progress: StepProgress,
  ) {}

  /**
   * Follows a request that the old version is about to get, if it is its turn to be copied.
   *
   * @param onCompared called when the answers have been compared
   */
  follow(request: InferenceRequest, from: ModelVersion, to: ModelVersion, onCompared: () => void): void {
    if (++this.#count % this.options.every !== 0) return;
    // Copies are not made of requests that wait: the busier the old version, the less its copies cost.
    if (this.#inFlight >= this.options.maxInFlight || from.statistics.pendingCount > 0) {
      this.evidence.shed();
      return;
    }
    request.observe(new ShadowTurn(copies(request.inputs), this, from, to, onCompared));
  }

  /** Sends a copy once the old version has answered. */
  answered(turn: ShadowTurn, request: InferenceRequest): void {
    this.clock.defer(() => this.#send(turn, request));
  }

  #send(turn: ShadowTurn, original: InferenceRequest): void {
    const { from, to } = turn;
    const now = this.clock.now();
    const onLoop = isInline(to);
    const isBusy = [from, to].some(({ hasRoom, statistics }) => !hasRoom || statistics.pendingCount > 0);
    const isFull = this.#inFlight >= this.options.maxInFlight;
    if (isFull || isBusy || to.state !== "READY" || (onLoop && now < this.#notBefore)) {
      this.evidence.shed();
      return;
    }
    this.#inFlight++;
    const call = new RoutedCall(true, now);
    this.progress.begin(call);
    const settled = (answer: Tensors | undefined) => {
      this.#inFlight--;
      const isCached = answer !== undefined && !request.executing;
      const how = answer === undefined ? "failed" : "answered";
      this.progress.end(call, isCached ? "unknown" : how, this.clock.now());
      if (onLoop) this.#keepToLoad(this.clock.now() - now, this.clock.now());
      this.evidence.shadowed(turn.outputsOfOld, answer, turn.oldMs, copy.ms, this.clock.now());
      turn.onCompared();
    };
    const copy = new ShadowTimes();
    const request = new InferenceRequest(to.name, undefined, {
      receive(outcome, final) {
        if (final) settled(outcome === undefined || TritonError.is(outcome) ? undefined : outcome.outputs);
      },
    });
    request.copyContent(original);
    request.parameters = shadowParameters(original.parameters);
    request.requestedOutputs = [];
    request.inputs = turn.inputs;
    request.observe(copy);
    try {
      to.infer(request);
    } catch {
      settled(undefined);
    }
  }

  /** Waits so long that the copies take no more than their part of the event loop's time. */
  #keepToLoad(tookMs: number, now: number): void {
    const { maxLoad } = this.options;
    this.#notBefore = maxLoad === 0 ? Number.POSITIVE_INFINITY : now + tookMs * (100 / maxLoad - 1);
  }
}

class ShadowTimes implements RequestObserver {
  ms: number | undefined;

  computed(_: InferenceRequest, inputMs: number, inferMs: number, outputMs: number): void {
    this.ms = inputMs + inferMs + outputMs;
  }
}

/** Parts of a request that are kept until its copy has been compared. */
class ShadowTurn extends ShadowTimes {
  outputsOfOld: Tensors | undefined;

  constructor(
    readonly inputs: Tensors,
    private readonly shadows: ShadowRequests,
    readonly from: ModelVersion,
    readonly to: ModelVersion,
    readonly onCompared: () => void,
  ) {
    super();
  }

  get oldMs(): number | undefined {
    return this.ms;
  }

  /** The answer may be changed, or its memory handed over, before the copy is compared. */
  outputs(_: InferenceRequest, outputs: Tensors): void {
    this.outputsOfOld = copies(outputs);
  }

  settled(request: InferenceRequest, error: TritonError | undefined): void {
    if (error !== undefined) this.outputsOfOld = undefined;
    // The response cache has answered: the version has computed nothing.
    else if (this.outputsOfOld === undefined) return;
    // A client that left says nothing about the version.
    if (error?.code !== "CANCELLED") this.shadows.answered(this, request);
  }
}

function copies(tensors: Tensors): Tensors {
  const all = new Map<string, Tensor>();
  for (const [name, tensor] of tensors) all.set(name, copyTensor(tensor));
  return all;
}

function isInline(model: ModelVersion): boolean {
  return model.instances.instances.some(({ executor }) => (executor.isolation ?? "inline") === "inline");
}
