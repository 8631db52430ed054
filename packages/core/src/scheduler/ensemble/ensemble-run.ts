import { isDecoupled, type ModelConfig, TritonError, timeoutError } from "@tritonjs/protocol";
import type { Clock } from "../../clock/clock.js";

import type { ModelStatistics } from "../../observe/statistics.js";
import type { InferenceResponse } from "../../request/inference-response.js";
import type { PendingRequest } from "../../request/pending-request.js";
import type { RequestRunner } from "../../request/request-observer.js";
import type { SequencePlace } from "../../request/sequence-info.js";
import { ensembleAnswer } from "./ensemble-answer.js";
import type { EnsemblePlan, EnsembleSelection, PlannedStep } from "./ensemble-plan.js";
import type { FindMember } from "./member.js";
import { StepCall, StepFrame } from "./step-call.js";
import type { StepLimit, WaitingStart } from "./step-limit.js";
import { stepRequest } from "./step-request.js";
import { plainSequence, sequenceAfter, sequenceOf } from "./step-sequence.js";
import { SummedTimes } from "./summed-times.js";

/** State that all requests of one ensemble share. */
export interface EnsembleOwner {
  readonly config: ModelConfig;
  readonly version: string;
  readonly plan: EnsemblePlan;
  /** By index of the step. */
  readonly limits: readonly StepLimit[];
  readonly findMember: FindMember;
  readonly clock: Clock;
  readonly statistics: ModelStatistics;
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
export class EnsembleRun implements RequestRunner<PendingRequest> {
  readonly #selection: EnsembleSelection;
  readonly #calls = new Set<StepCall>();
  /** Steps that wait for a permit, with the semaphore that they wait for. */
  readonly #inLine = new Map<WaitingStart, StepLimit>();
  readonly #start: number;
  /** Number of steps that have started, or are about to start, and have not ended. */
  #underWay = 0;
  #answered = false;
  #over = false;
  #readerIsBehind = false;
  readonly #computed = new SummedTimes();

  constructor(
    private readonly request: PendingRequest,
    private readonly owner: EnsembleOwner,
  ) {
    this.#selection = owner.plan.select(request.requestedOutputs);
    this.#start = owner.clock.now();
  }

  /** Starts the steps that need only the request's own inputs. */
  start(): void {
    const { request } = this;
    const frame = new StepFrame(this.#selection.readers);
    for (const [name, tensor] of request.inputs) frame.put(name, tensor, request.batchSize);
    for (const name of this.owner.plan.optionalInputs) {
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
    const limit = this.owner.limits[step.index]!;
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

  /** Sends a step its request. Returns false if it could not be sent, or its answer is not wanted any more. */
  #startStep(step: PlannedStep, frame: StepFrame): boolean {
    if (this.#over) return false;
    const { config, version, findMember, clock } = this.owner;
    let call: StepCall | undefined;
    try {
      const member = findMember(step.modelName, step.modelVersion, step.modelNamespace);
      const read = step.inputs.map(([, tensor]) => tensor);
      const sequence = sequenceOf(read, frame.tensors, plainSequence(this.request));
      const request = stepRequest({
        parent: this.request,
        caller: `${config.name}/${version}`,
        member,
        step,
        sequence,
        tensors: frame.tensors,
        requestedOutputs: this.#selection.requestedOutputs.get(step)!,
        now: clock.now(),
        onResponse: (outcome, final) => this.#responded(call!, outcome, final),
      });
      call = new StepCall(step, frame, member, request, sequence, this.#readerIsBehind, this.#computed);
      this.#calls.add(call);
      member.infer(request);
      return true;
    } catch (thrown) {
      if (call !== undefined) this.#calls.delete(call);
      this.#underWay--;
      this.#fail(TritonError.from(thrown));
      return false;
    }
  }

  #responded(call: StepCall, outcome: InferenceResponse | TritonError | undefined, final: boolean): void {
    const { step, frame } = call;
    if (final) {
      this.#calls.delete(call);
      this.owner.limits[step.index]!.release();
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
    let sequence: SequencePlace;
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
    const response = ensembleAnswer(this.owner, request, this.#selection.outputs, frame.tensors);
    this.#answered = true;
    if (final) this.#succeed();
    request.made(response.outputs);
    request.respond(response, final);
    if (!final) this.#followReader();
  }

  /** Ends the request if no step is in flight and there is nothing to answer with. */
  #end(): void {
    if (!this.#answered && !isDecoupled(this.owner.config)) {
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
    const tell = (behind: boolean) => {
      this.#readerIsBehind = behind;
      for (const call of this.#calls) call.readerIsBehind = behind;
    };
    tell(true);
    void wait.then(() => tell(false));
  }

  #succeed(): void {
    const { clock, statistics } = this.owner;
    this.#over = true;
    const { queueStart, rows } = this.request;
    const totalMs = clock.now() - queueStart;
    const { inputMs, inferMs, outputMs } = this.#computed;
    statistics.recordEnsemble(rows, this.#start - queueStart, totalMs, this.#computed, clock.wallNow());
    this.request.computed(inputMs, inferMs, outputMs);
  }

  /** Ends the request with the first error, and cancels the steps in flight. */
  #fail(error: TritonError): void {
    if (this.#over) return;
    const { request, owner } = this;
    const { clock, config, statistics } = owner;
    if (request.deadline !== undefined && request.deadline <= clock.now()) {
      request.cancel(timeoutError());
      return;
    }
    const message = `in ensemble '${config.name}', ${error.message}`;
    const told = new TritonError(error.code, message, { reason: error.reason, cause: error });
    const totalMs = clock.now() - request.queueStart;
    statistics.recordFailure("OTHER", totalMs);
    // Like Triton, count the request once more if no other step is in flight: dashboards and alerts rely on it.
    if (this.#underWay === 0) statistics.recordFailure("OTHER", totalMs);
    this.givenUp(request, new TritonError("CANCELLED", message, { cause: error }));
    request.respondError(told);
  }

  /** Cancels the steps in flight, because the request was cancelled. */
  givenUp({ cancelReason }: PendingRequest, reason = cancelReason!): void {
    this.#over = true;
    for (const [waiting, limit] of this.#inLine) limit.leave(waiting);
    this.#inLine.clear();
    for (const call of [...this.#calls]) call.request.cancel(reason);
  }
}
