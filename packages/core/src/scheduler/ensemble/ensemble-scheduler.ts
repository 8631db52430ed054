import { isDecoupled, type ModelConfig, type Tensor, TritonError, timeoutError } from "@tritonjs/protocol";
import type { ComputeTimes, ModelStatistics } from "../../observe/statistics.js";
import type {
  InferenceRequest,
  RequestObserver,
  RequestRunner,
  RequestSender,
} from "../../request/inference-request.js";
import type { InferenceResponse } from "../../request/inference-response.js";
import { copySequence, type SequencePosition, sequenceAfter } from "../../request-info.js";
import type { Clock } from "../../system/clock.js";
import { isPartOfWork, type Scheduler, stoppedError } from "../scheduler.js";
import {
  type EnsembleMember,
  EnsemblePlan,
  type EnsembleSelection,
  EnsembleTensor,
  ensembleAnswer,
  type FindMember,
  inEnsemble,
  type PlannedStep,
  sequenceOf,
  stepInputs,
} from "./ensemble-steps.js";

/** Step size with which the time after a step is learnt: about the last 10 requests count. */
const REST_STEP = 0.1;

/**
 * Runs requests through the steps of an ensemble. It has no queue and no instances: requests wait in the queues of
 * the members.
 */
export class EnsembleScheduler implements Scheduler {
  readonly queuedCount = 0;
  readonly version: string;
  readonly plan: EnsemblePlan;
  readonly stepLimits: readonly StepLimit[];
  /** Usual milliseconds from the end of each step to the answer, as requests with a time limit have shown. */
  readonly restMs: Float64Array;
  #stopped = false;

  constructor(
    readonly config: ModelConfig,
    version: number,
    readonly findMember: FindMember,
    readonly clock: Clock,
    readonly statistics: ModelStatistics,
  ) {
    this.version = String(version);
    this.plan = new EnsemblePlan(config);
    const limit = config.ensembleScheduling?.maxInflightRequests ?? 0;
    this.stepLimits = this.plan.steps.map(() => new StepLimit(limit));
    this.restMs = new Float64Array(this.plan.steps.length);
  }

  enqueue(request: InferenceRequest): void {
    if (this.#stopped && !isPartOfWork(request)) throw stoppedError(request);
    const run = new EnsembleRun(request, this);
    request.startExecution(run);
    this.statistics.pendingCount--;
    run.start();
  }

  stop(): void {
    this.#stopped = true;
  }

  failQueued(): void {}
}

/**
 * One request on its way through an ensemble. Tensors drive it: a step starts when all tensors that it reads exist, and
 * its answer may start other steps.
 *
 * ```
 * frame of the request:     X --> [a] --> m --> [decoupled b]
 *                                                 |  one frame for each response
 * frame of each response:                         +--> n --> [c] --> Y --> an answer
 * ```
 *
 * A response of a decoupled step opens a frame, in which the steps after it run once more. Tensors of different frames
 * never meet. An answer is sent when all outputs exist in one frame. It is the last if no step is in flight.
 */
class EnsembleRun implements RequestRunner, ComputeTimes {
  /** Total compute times of all steps. */
  inputMs = 0;
  inferMs = 0;
  outputMs = 0;
  readonly #selection: EnsembleSelection;
  readonly #calls = new Set<StepCall>();
  readonly #inLine = new Map<WaitingStart, StepLimit>();
  readonly #start: number;
  /** When each step ended, for a request with a time limit. */
  readonly #endedAt: number[] | undefined;
  /** Number of steps that have started, or are about to start, and have not ended. */
  #underWay = 0;
  #answered = false;
  #over = false;
  #readerIsBehind = false;

  constructor(
    private readonly request: InferenceRequest,
    private readonly ensemble: EnsembleScheduler,
  ) {
    this.#selection = ensemble.plan.select(request.requestedOutputs);
    this.#start = ensemble.clock.now();
    if (request.limitMs < Number.POSITIVE_INFINITY) this.#endedAt = [];
  }

  /** Starts the steps that need only the request's own inputs. */
  start(): void {
    const { request } = this;
    const frame = new StepFrame(this.#selection.readers);
    for (const [name, tensor] of request.inputs) frame.put(name, tensor, request.batchSize);
    for (const name of this.ensemble.plan.optionalInputs) {
      if (!frame.tensors.has(name)) frame.put(name, undefined, request.batchSize);
    }
    this.#proceed(frame, [...frame.tensors.keys()]);
  }

  /** Continues after tensors of a frame were added, or a step has ended. */
  #proceed(frame: StepFrame, names: readonly string[]): void {
    const ready = new Set(names.flatMap((name) => this.#readySteps(frame, name)));
    this.#underWay += ready.size;
    const { outputs } = this.#selection;
    const complete =
      names.some((name) => outputs.includes(name)) && outputs.every((name) => frame.tensors.has(name));
    if (complete) this.#answer(frame, this.#underWay === 0);
    else if (this.#underWay === 0) this.#end();
    for (const step of ready) {
      if (this.#over) return;
      this.#launch(step, frame);
    }
  }

  #readySteps(frame: StepFrame, name: string): PlannedStep[] {
    const consumers = this.#selection.consumers.get(name) ?? [];
    return consumers.filter((step) => step.inputs.every(([, tensor]) => frame.tensors.has(tensor)));
  }

  #launch(step: PlannedStep, frame: StepFrame): void {
    const { source } = frame;
    const limit = this.ensemble.stepLimits[step.index]!;
    frame.active++;
    const waiting: WaitingStart = {
      start: () => {
        if (this.#inLine.delete(waiting)) source?.leaveLine();
        return this.#startStep(step, frame);
      },
    };
    if (limit.acquire(waiting) || this.#over) return;
    this.#inLine.set(waiting, limit);
    source?.joinLine();
  }

  /** Leaves the later steps the milliseconds that they usually take. */
  #reserve(step: InferenceRequest, restMs: number): void {
    const { request } = this;
    if (restMs === 0 || request.limitMs === Number.POSITIVE_INFINITY) return;
    const passedMs = this.ensemble.clock.now() - request.queueStart;
    step.clientLimitMs = Math.max(1e-3, request.limitMs - passedMs - restMs);
  }

  /** Sends a step its request. Returns false if it could not be sent, or its answer is not wanted any more. */
  #startStep(step: PlannedStep, frame: StepFrame): boolean {
    if (this.#over) return false;
    const { config, version, findMember, clock } = this.ensemble;
    let call: StepCall | undefined;
    try {
      const member = findMember(step.modelName, step.modelVersion, step.modelNamespace);
      const read = step.inputs.map(([, tensor]) => tensor);
      const sequence = sequenceOf(read, frame.tensors, this.request);
      const request = this.request.child(member.config.name, `${config.name}/${version}`, clock.now());
      this.#reserve(request, this.ensemble.restMs[step.index]!);
      request.inputs = stepInputs(step, member.config, frame.tensors);
      request.requestedOutputs = this.#selection.requestedOutputs.get(step)!;
      if (member.takesSources) request.innerOutputs = this.#innerOutputs(step);
      copySequence(sequence, request);
      const answering = step.modelVersion === "" ? member.chosen(request) : member;
      call = new StepCall(step, frame, answering, request, sequence, this.#readerIsBehind, this);
      this.#calls.add(call);
      answering.infer(request);
      return true;
    } catch (thrown) {
      if (call !== undefined) this.#calls.delete(call);
      this.#underWay--;
      this.#fail(TritonError.from(thrown));
      return false;
    }
  }

  /** Outputs of a step that all their readers take from a GPU. */
  #innerOutputs(step: PlannedStep): ReadonlySet<string> | undefined {
    const { findMember } = this.ensemble;
    const inner = [...this.#selection.inner.get(step)!].filter(([, steps]) =>
      steps.every((reader) => {
        const { takesSources } = findMember(reader.modelName, reader.modelVersion, reader.modelNamespace);
        return takesSources;
      }),
    );
    return inner.length === 0 ? undefined : new Set(inner.map(([output]) => output));
  }

  received(call: StepCall, outcome: InferenceResponse | TritonError | undefined, final: boolean): void {
    const { step, frame } = call;
    if (final) {
      this.#calls.delete(call);
      this.ensemble.stepLimits[step.index]!.release();
      if (this.#endedAt !== undefined) this.#endedAt[step.index] = this.ensemble.clock.now();
    }
    if (this.#over) return;
    if (final) this.#underWay--;
    if (TritonError.is(outcome)) this.#fail(outcome);
    else if (outcome === undefined) this.#proceed(frame, []);
    else this.#take(call, outcome);
    if (final) frame.stepEnded();
  }

  /** Stores a step's outputs for the steps after it. An output that was left out is stored as missing. */
  #take(call: StepCall, response: InferenceResponse): void {
    const { step, member, request } = call;
    let sequence: SequencePosition;
    try {
      sequence = sequenceAfter(call.sequence, response.parameters);
    } catch (error) {
      this.#fail(TritonError.from(error));
      return;
    }
    const opens = isDecoupled(member.config);
    const frame = opens ? new StepFrame(this.#selection.readers, call) : call.frame;
    const names: string[] = [];
    for (const output of request.requestedOutputs) {
      const name = step.outputs.get(output)!;
      frame.put(name, response.outputs.get(output), request.batchSize, sequence);
      names.push(name);
    }
    this.#proceed(frame, names);
    if (opens) frame.opened();
  }

  #answer(frame: StepFrame, final: boolean): void {
    const { request } = this;
    const response = ensembleAnswer(this.ensemble, request, this.#selection.outputs, frame.tensors);
    this.#answered = true;
    if (final) this.#succeed();
    request.made(response.outputs);
    request.respond(response, final);
    if (!final) this.#followReader();
  }

  /** Ends the request if no step is in flight and there is nothing to answer with. */
  #end(): void {
    if (!this.#answered && !isDecoupled(this.ensemble.config)) {
      const text =
        "unexpected deadlock, at least one output is not set while no more ensemble steps can be made";
      this.#fail(new TritonError("INVALID_ARG", `${this.request.logPrefix}${text}`));
      return;
    }
    this.#succeed();
    this.request.finish();
  }

  /** Pauses decoupled steps while the consumer of the answers does not keep up. */
  #followReader(): void {
    const wait = this.request.writable;
    if (wait === undefined || this.#readerIsBehind) return;
    const pauseSteps = (behind: boolean) => {
      this.#readerIsBehind = behind;
      for (const call of this.#calls) call.readerIsBehind = behind;
    };
    pauseSteps(true);
    void wait.then(() => pauseSteps(false));
  }

  #succeed(): void {
    const { clock, statistics } = this.ensemble;
    this.#over = true;
    const { queueStart, rows } = this.request;
    const now = clock.now();
    const totalMs = now - queueStart;
    const { restMs } = this.ensemble;
    this.#endedAt?.forEach((endedAt, step) => {
      restMs[step]! += REST_STEP * (now - endedAt - restMs[step]!);
    });
    const { inputMs, inferMs, outputMs } = this;
    statistics.recordEnsemble(rows, this.#start - queueStart, totalMs, this, clock.wallNow());
    this.request.computed(inputMs, inferMs, outputMs);
  }

  /** Ends the request with the first error, and cancels the steps in flight. */
  #fail(error: TritonError): void {
    if (this.#over) return;
    const { request } = this;
    const { clock, config, statistics } = this.ensemble;
    if (request.deadline !== undefined && request.deadline <= clock.now()) {
      request.cancel(timeoutError());
      return;
    }
    const answer = inEnsemble(config.name, error);
    const totalMs = clock.now() - request.queueStart;
    statistics.recordFailure("OTHER", totalMs);
    // Like Triton, count the request once more if no other step is in flight: dashboards and alerts rely on it.
    if (this.#underWay === 0) statistics.recordFailure("OTHER", totalMs);
    this.givenUp(request, new TritonError("CANCELLED", answer.message, { cause: error }));
    request.respondError(answer);
  }

  /** Cancels the steps in flight, because the request was cancelled. */
  givenUp({ cancelReason }: InferenceRequest, reason = cancelReason!): void {
    this.#over = true;
    for (const [waiting, limit] of this.#inLine) limit.leave(waiting);
    this.#inLine.clear();
    for (const call of [...this.#calls]) call.request.cancel(reason);
  }
}

/** Number of responses of a decoupled step whose further steps may be in flight before the step has to wait. */
const WINDOW = 16;

/** Tensors that belong together: those of the request, or those that derive from one response of a decoupled step. */
class StepFrame {
  readonly tensors = new Map<string, EnsembleTensor>();
  /** Number of steps that have been launched in the frame and have not ended. */
  active = 0;
  #counted = false;

  /**
   * @param readers number of reads of each tensor; a tensor without readers is not kept
   * @param source the decoupled step whose response opened the frame
   */
  constructor(
    private readonly readers: ReadonlyMap<string, number>,
    readonly source?: StepCall,
  ) {}

  /** @param sequence sequence of the steps that read the tensor, if it comes from another step */
  put(name: string, tensor: Tensor | undefined, batchSize: number, sequence?: SequencePosition): void {
    const readers = this.readers.get(name);
    if (readers === undefined) return;
    this.tensors.set(name, new EnsembleTensor(tensor, batchSize, readers, sequence));
  }

  /** Marks that the first steps of the frame have been launched. */
  opened(): void {
    if (this.active === 0 || this.source === undefined) return;
    this.#counted = true;
    this.source.framesUnderWay++;
    this.source.adapt();
  }

  stepEnded(): void {
    this.active--;
    if (this.active > 0 || !this.#counted || this.source === undefined) return;
    this.#counted = false;
    this.source.framesUnderWay--;
    this.source.adapt();
  }
}

/**
 * A step in flight. A step of a decoupled model waits before its next response in three cases: the consumer of the
 * answers is behind, later steps wait for a permit, or too many of its responses are in flight.
 */
class StepCall implements RequestObserver, RequestSender {
  framesUnderWay = 0;
  #inLine = 0;
  #readerIsBehind: boolean;

  constructor(
    readonly step: PlannedStep,
    readonly frame: StepFrame,
    readonly member: EnsembleMember,
    readonly request: InferenceRequest,
    /** Sequence of its request, as sent; the member's scheduler may change its own. */
    readonly sequence: SequencePosition,
    readerIsBehind: boolean,
    private readonly run: EnsembleRun,
  ) {
    this.#readerIsBehind = readerIsBehind;
    request.sender = this;
    request.observe(this);
    this.adapt();
  }

  receive(outcome: InferenceResponse | TritonError | undefined, final: boolean): void {
    this.run.received(this, outcome, final);
  }

  computed(_request: InferenceRequest, inputMs: number, inferMs: number, outputMs: number): void {
    this.run.inputMs += inputMs;
    this.run.inferMs += inferMs;
    this.run.outputMs += outputMs;
  }

  set readerIsBehind(behind: boolean) {
    this.#readerIsBehind = behind;
    this.adapt();
  }

  /** Notes that a step which follows from one of the responses waits for a permit. */
  joinLine(): void {
    this.#inLine++;
    this.adapt();
  }

  leaveLine(): void {
    this.#inLine--;
    this.adapt();
  }

  adapt(): void {
    if (this.#readerIsBehind || this.#inLine > 0 || this.framesUnderWay >= WINDOW) this.request.pause();
    else this.request.resume();
  }
}

interface WaitingStart {
  /** Starts. Returns false if it is no longer wanted; the permit goes to the next then. */
  start(): boolean;
}

/** FIFO semaphore that limits the requests in flight of one step, over all requests of the ensemble. */
export class StepLimit {
  #underWay = 0;
  /** A set, because it keeps the order and allows removal from any position. */
  readonly #waiting = new Set<WaitingStart>();

  /** @param max number of permits; 0 for no limit */
  constructor(private readonly max: number) {}

  /** Starts at once, or when a permit is free. Returns whether it started at once. */
  acquire(waiting: WaitingStart): boolean {
    if (this.max > 0 && this.#underWay >= this.max) {
      this.#waiting.add(waiting);
      return false;
    }
    this.#underWay++;
    if (!waiting.start()) this.release();
    return true;
  }

  release(): void {
    this.#underWay--;
    for (const next of this.#waiting) {
      if (this.#underWay >= this.max) return;
      this.#waiting.delete(next);
      this.#underWay++;
      if (!next.start()) this.#underWay--;
    }
  }

  leave(waiting: WaitingStart): void {
    this.#waiting.delete(waiting);
  }
}
