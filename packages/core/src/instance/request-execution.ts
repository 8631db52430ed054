import type { BatchLayout } from "../batch/batch-layout.js";
import type { Tensors } from "../batch/merge-inputs.js";
import type { CallModels, CallOrigin, ModelCaller, TensorCaller } from "../callable/model-caller.js";
import type { Clock } from "../clock/clock.js";
import { TritonError } from "../errors/triton-error.js";
import type { ExecutionTimes, ModelStatistics } from "../observe/statistics.js";
import type { RequestTrace } from "../observe/trace/request-trace.js";
import type { AnswerCounter, InferenceRequest } from "../request/inference-request.js";
import { parametersOf } from "../response/response-parameters.js";
import type { Tensor } from "../tensor/tensor.js";
import { CountedResponses } from "./counted-responses.js";
import type { Execution } from "./executor.js";

/** What all instances of one model version share. */
export interface InstanceOwner {
  readonly modelName: string;
  readonly modelVersion: string;
  /** Whether a request is answered by any number of responses. */
  readonly decoupled: boolean;
  /** Whether the model may ask to see a request again. */
  readonly iterative: boolean;
  readonly clock: Clock;
  readonly statistics: ModelStatistics;
  /** Names of all outputs, in the model's order. */
  readonly outputNames: readonly string[];
  readonly callModels: CallModels;
  /** How requests are joined to a batch; undefined where that is by rows. */
  readonly layout?: BatchLayout | undefined;
}

/** The execution of a payload's requests: takes the times, answers the requests, counts. */
export class RequestExecution implements Execution, CallOrigin, AnswerCounter {
  #start: number;
  #inputEnd: number | undefined;
  #inferEnd: number | undefined;
  #ended: ExecutionTimes | undefined;
  #controller: AbortController | undefined;
  /** Listens to the signals of all requests, once somebody has asked for that of the execution. */
  #onAbort: (() => void) | undefined;
  /** Requests whose first response was sent, where that is measured. */
  #responded: Set<InferenceRequest> | undefined;
  /** Made when the model first wants to see one of the requests again. */
  #rescheduled: Set<InferenceRequest> | undefined;
  /** Of a decoupled model. */
  readonly #responses: CountedResponses | undefined;

  constructor(
    readonly requests: readonly InferenceRequest[],
    private readonly owner: InstanceOwner,
  ) {
    const { clock, decoupled, statistics } = owner;
    this.#start = clock.now();
    if (decoupled) this.#responses = new CountedResponses(requests.length, statistics.responses, clock);
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

  /** Models that are at work on any of the requests, the longest chain of calls last, and this one. */
  get callers(): readonly string[] {
    const chains = this.requests.map(({ callers }) => callers);
    const longest = chains.reduce((one, other) => (other.length > one.length ? other : one));
    const others = new Set(chains.flat());
    for (const caller of longest) others.delete(caller);
    return [...others, ...longest, `${this.owner.modelName}/${this.owner.modelVersion}`];
  }

  /** When the last of the requests runs out of time; undefined when one never does. */
  get deadline(): number | undefined {
    const deadlines = this.requests.map((request) => request.deadline ?? Number.POSITIVE_INFINITY);
    const last = Math.max(...deadlines);
    return last === Number.POSITIVE_INFINITY ? undefined : last;
  }

  get trace(): RequestTrace | undefined {
    return this.requests.find(({ trace }) => trace !== undefined)?.trace;
  }

  get decoupled(): boolean {
    return this.owner.decoupled;
  }

  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      const controller = new AbortController();
      this.#controller = controller;
      const check = () => {
        if (this.requests.every((request) => request.answered)) {
          controller.abort(this.requests.find((request) => request.ready)?.cancelReason);
        }
      };
      this.#onAbort = check;
      for (const request of this.requests) request.signal.addEventListener("abort", check, { once: true });
      check();
    }
    return this.#controller.signal;
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

  /** The times of the batch, as if what has not happened yet happened now. */
  get times(): ExecutionTimes {
    if (this.#ended !== undefined) return this.#ended;
    const end = this.owner.clock.now();
    return { start: this.#start, inputEnd: this.#inputEnd ?? end, inferEnd: this.#inferEnd ?? end, end };
  }

  /** The batch is through. */
  end(): void {
    this.#ended = this.times;
  }

  isOpen(index: number): boolean {
    const request = this.requests[index]!;
    return !request.answered && !this.#rescheduled?.has(request);
  }

  writable(index: number): Promise<void> | undefined {
    return this.requests[index]!.writable;
  }

  send(index: number, outputs: Tensors, final = false): void {
    const request = this.requests[index]!;
    request.keepStates?.(outputs);
    if (request.answered) this.#responses?.unwanted(index, this.#computeStart);
    if (request.answered && request.keepOutputs === undefined) return;
    const handedOver = this.#responses === undefined ? 0 : this.owner.clock.now();
    const selected = this.#select(outputs, request.requestedOutputs);
    if (this.owner.statistics.latencies !== undefined) this.#observeFirstResponse(request);
    if (final) request.counter = this;
    request.keepOutputs?.(selected);
    const { modelName, modelVersion } = this.owner;
    const parameters = parametersOf(outputs);
    request.respond({ modelName, modelVersion, id: request.id, parameters, outputs: selected }, final);
    this.#responses?.sent(index, this.#computeStart, handedOver, final);
  }

  sendError(index: number, error: TritonError, final = false): void {
    const request = this.requests[index]!;
    if (request.answered) {
      this.#responses?.unwanted(index, this.#computeStart);
      return;
    }
    if (final) request.counter = this;
    request.respondError(error, final);
    this.#responses?.failed(index, this.#computeStart, final);
  }

  reschedule(index: number): void {
    const request = this.requests[index]!;
    if (request.answered) return;
    if (!this.owner.iterative) {
      const { modelName } = this.owner;
      const text = `model '${modelName}' returned RESCHEDULE, which needs sequence batching with iterative sequences`;
      this.sendError(index, new TritonError("INTERNAL", text), true);
      return;
    }
    this.#rescheduled ??= new Set();
    this.#rescheduled.add(request);
    // It comes back in another execution, perhaps many times.
    if (this.#onAbort !== undefined) request.signal.removeEventListener("abort", this.#onAbort);
    this.#countSuccess(request);
  }

  /** True when the model wants to see the request again. */
  isRescheduled(request: InferenceRequest): boolean {
    return this.#rescheduled?.has(request) === true && !request.answered;
  }

  finish(index: number): void {
    const request = this.requests[index]!;
    if (this.#rescheduled?.has(request)) return;
    if (request.answered) {
      this.#responses?.unwanted(index, this.#computeStart);
      return;
    }
    request.counter = this;
    request.finish();
    this.#responses?.finished(index, this.#computeStart);
  }

  answered(request: InferenceRequest, error: TritonError | undefined): void {
    request.trace?.compute(this.times);
    if (error === undefined) this.#countSuccess(request);
    else this.owner.statistics.recordFailure("BACKEND", this.owner.clock.now() - request.queueStart);
  }

  /** When the model began to compute. */
  get #computeStart(): number {
    return this.#inputEnd ?? this.#start;
  }

  #observeFirstResponse(request: InferenceRequest): void {
    this.#responded ??= new Set();
    if (request.answered || this.#responded.has(request)) return;
    this.#responded.add(request);
    const { clock, statistics } = this.owner;
    statistics.latencies?.firstResponse?.observe(clock.now() - request.queueStart);
  }

  #countSuccess(request: InferenceRequest): void {
    // A decoupled request may end before its batch does, or long after.
    const { times } = this;
    this.owner.statistics.recordSuccess(request.rows, request.queueStart, times);
    request.onComputed?.({
      inputMs: times.inputEnd - times.start,
      inferMs: times.inferEnd - times.inputEnd,
      outputMs: times.end - times.inferEnd,
    });
  }

  /** The outputs that were asked for, in the model's order. */
  #select(outputs: Tensors, requested: readonly string[]): Tensors {
    const { outputNames } = this.owner;
    // Most models have one output, and everybody wants it.
    const isAll = requested.length === 0 && outputNames.length === 1 && outputs.size === 1;
    if (isAll && outputs.has(outputNames[0]!)) return outputs;
    const selected = new Map<string, Tensor>();
    for (const name of outputNames) {
      const tensor = outputs.get(name);
      if (tensor === undefined) continue;
      if (requested.length === 0 || requested.includes(name)) selected.set(name, tensor);
    }
    return selected;
  }
}
