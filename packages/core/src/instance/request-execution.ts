import { TritonError } from "@tritonjs/protocol";
import type { BatchLayout } from "../batch/batch-layout.js";
import type { Tensors } from "../batch/merge-inputs.js";
import { rememberModel } from "../callable/callback-error.js";
import type { CallOrigin, ModelCaller, TensorCaller } from "../callable/model-caller.js";
import type { Clock } from "../clock/clock.js";
import type { ExecutionTimes } from "../observe/duration.js";
import type { RequestTrace } from "../observe/trace/request-trace.js";
import type { PendingRequest } from "../request/pending-request.js";
import type { RequestRunner } from "../request/request-observer.js";
import { parametersOf } from "../response/response-parameters.js";
import { selectOutputs } from "../response/select-outputs.js";
import { CountedResponses } from "./counted-responses.js";
import type { ExecutableRequest, Execution, ExecutionWatcher } from "./executor.js";
import type { InstanceOwner } from "./instance-owner.js";
import { RequestView } from "./request-view.js";

/**
 * The execution of a payload's requests: takes the times, answers the requests, and updates the statistics. Executors
 * see views of the requests.
 */
export class RequestExecution implements Execution, CallOrigin, RequestRunner<PendingRequest> {
  #start: number;
  #inputEnd: number | undefined;
  #inferEnd: number | undefined;
  #ended: ExecutionTimes | undefined;
  #controller: AbortController | undefined;
  #watcher: ExecutionWatcher | undefined;
  /**
   * Positions of requests whose first response was sent (if that is measured), and of requests that the model
   * rescheduled.
   */
  #responded: Set<number> | undefined;
  #rescheduled: Set<number> | undefined;
  /** Set for a decoupled model. */
  readonly #responses: CountedResponses | undefined;

  readonly requests: readonly ExecutableRequest[];
  readonly #pending: readonly PendingRequest[];

  constructor(
    pending: readonly PendingRequest[],
    private readonly owner: InstanceOwner,
  ) {
    this.#pending = pending;
    this.requests = pending.map((one) => new RequestView(one, one.inputs, one.rows, one));
    const { clock, decoupled, statistics } = owner;
    this.#start = clock.now();
    if (decoupled) this.#responses = new CountedResponses(pending.length, statistics.responses, clock);
  }

  get clock(): Clock {
    return this.owner.clock;
  }

  get layout(): BatchLayout | undefined {
    return this.owner.layout;
  }

  get models(): ModelCaller & TensorCaller {
    return this.owner.callModels(this);
  }

  /** Models that work on any of the requests, from the longest chain of calls, followed by this model. */
  get callers(): readonly string[] {
    const chains = this.#pending.map(({ callers }) => callers);
    const longest = chains.reduce((one, other) => (other.length > one.length ? other : one));
    const others = new Set(chains.flat());
    for (const caller of longest) others.delete(caller);
    return [...others, ...longest, `${this.owner.modelName}/${this.owner.modelVersion}`];
  }

  /** Latest deadline of the requests; undefined if one has none. */
  get deadline(): number | undefined {
    const deadlines = this.#pending.map((request) => request.deadline ?? Number.POSITIVE_INFINITY);
    const last = Math.max(...deadlines);
    return last === Number.POSITIVE_INFINITY ? undefined : last;
  }

  get trace(): RequestTrace | undefined {
    return this.#pending.find(({ trace }) => trace !== undefined)?.trace;
  }

  get within(): (<T>(fn: () => T) => T) | undefined {
    const { trace } = this;
    return trace && ((fn) => trace.within(fn));
  }

  get decoupled(): boolean {
    return this.owner.decoupled;
  }

  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController();
      this.#abortIfOver();
    }
    return this.#controller.signal;
  }

  watch(watcher: ExecutionWatcher): void {
    this.#watcher = watcher;
  }

  givenUp(request: PendingRequest): void {
    this.#abortIfOver();
    this.#watcher?.givenUp(this.#pending.indexOf(request));
  }

  askedToStop(request: PendingRequest): boolean {
    if (this.#watcher?.askedToStop === undefined) return false;
    this.#watcher.askedToStop(this.#pending.indexOf(request));
    return true;
  }

  inputsReady(): void {
    this.#inputEnd = this.owner.clock.now();
  }

  postponed(): void {
    if (this.#inputEnd === undefined) return;
    const waitedMs = this.owner.clock.now() - this.#inputEnd;
    this.#start += waitedMs;
    this.#inputEnd += waitedMs;
  }

  outputsReady(): void {
    this.#inferEnd = this.owner.clock.now();
  }

  /** Times of the batch. Events that have not happened yet count as happening now. */
  get times(): ExecutionTimes {
    if (this.#ended !== undefined) return this.#ended;
    const end = this.owner.clock.now();
    return { start: this.#start, inputEnd: this.#inputEnd ?? end, inferEnd: this.#inferEnd ?? end, end };
  }

  /**
   * Ends the batch.
   *
   * @param hasResults true if the executor has finished with the requests, and needs no notice of cancellations
   */
  end(hasResults: boolean): void {
    this.#ended = this.times;
    if (hasResults) this.#watcher = undefined;
  }

  isOpen(index: number): boolean {
    return !this.#pending[index]!.answered && !this.#rescheduled?.has(index);
  }

  writable(index: number): Promise<void> | undefined {
    return this.#pending[index]!.writable;
  }

  send(index: number, outputs: Tensors, final = false): void {
    const request = this.#pending[index]!;
    request.made(outputs);
    if (request.answered) {
      this.#responses?.unwanted(index, this.#computeStart);
      return;
    }
    const handedOver = this.#responses === undefined ? 0 : this.owner.clock.now();
    const selected = selectOutputs(outputs, this.owner.outputNames, request.requestedOutputs);
    if (this.owner.statistics.latencies !== undefined) this.#observeFirstResponse(request, index);
    const { modelName, modelVersion } = this.owner;
    const parameters = parametersOf(outputs);
    request.respond({ modelName, modelVersion, id: request.id, parameters, outputs: selected }, final);
    this.#responses?.sent(index, this.#computeStart, handedOver, final);
  }

  sendError(index: number, error: TritonError, final = false): void {
    const request = this.#pending[index]!;
    if (request.answered) {
      this.#responses?.unwanted(index, this.#computeStart);
      return;
    }
    if (error.cause !== undefined) rememberModel(error, this.owner.modelName);
    // The end of the request notes a final error.
    if (!final) this.owner.statistics.errors.record(error, this.owner.clock.wallNow());
    request.respondError(error, final);
    this.#responses?.failed(index, this.#computeStart, final);
  }

  reschedule(index: number): void {
    const request = this.#pending[index]!;
    if (request.answered) return;
    if (!this.owner.iterative) {
      const { modelName } = this.owner;
      const text = `model '${modelName}' returned RESCHEDULE, which needs sequence batching with iterative sequences`;
      this.sendError(index, new TritonError("INTERNAL", text), true);
      return;
    }
    this.#rescheduled ??= new Set();
    this.#rescheduled.add(index);
    this.#countSuccess(request);
  }

  /** True if the model rescheduled the request at `index`. */
  isRescheduled(index: number): boolean {
    return this.#rescheduled?.has(index) === true && !this.#pending[index]!.answered;
  }

  finish(index: number): void {
    const request = this.#pending[index]!;
    if (this.#rescheduled?.has(index)) return;
    if (request.answered) {
      this.#responses?.unwanted(index, this.#computeStart);
      return;
    }
    request.finish();
    this.#responses?.finished(index, this.#computeStart);
  }

  answered(request: PendingRequest, error: TritonError | undefined): void {
    request.trace?.compute(this.times);
    if (error === undefined) this.#countSuccess(request);
    else this.owner.statistics.recordFailure("BACKEND", this.owner.clock.now() - request.queueStart);
  }

  /** Time at which the model began to compute. */
  get #computeStart(): number {
    return this.#inputEnd ?? this.#start;
  }

  #abortIfOver(): void {
    if (this.#controller === undefined || !this.#pending.every((request) => request.answered)) return;
    this.#controller.abort(this.#pending.find((request) => request.ready)?.cancelReason);
  }

  #observeFirstResponse(request: PendingRequest, index: number): void {
    this.#responded ??= new Set();
    if (this.#responded.has(index)) return;
    this.#responded.add(index);
    const { clock, statistics } = this.owner;
    statistics.latencies?.firstResponse?.observe(clock.now() - request.queueStart);
  }

  #countSuccess(request: PendingRequest): void {
    // A decoupled request may end before its batch does, or long after.
    const { times } = this;
    this.owner.statistics.recordSuccess(request.rows, request.queueStart, times);
    request.computed(
      times.inputEnd - times.start,
      times.inferEnd - times.inputEnd,
      times.end - times.inferEnd,
    );
  }
}
