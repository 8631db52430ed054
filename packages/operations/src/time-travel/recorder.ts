import { availableParallelism } from "node:os";
import type {
  AroundScheduling,
  Extension,
  ExtensionParts,
  ExtensionServer,
  ModelPlan,
} from "@tritonjs/core/extension";
import { planInstances } from "@tritonjs/core/extension";
import {
  type Clock,
  EqualInputsRule,
  type InferenceRequest,
  lengthLimitOf,
  type Payload,
  realClock,
  type Timer,
  VERSION,
} from "@tritonjs/core/internal";
import { TritonError } from "@tritonjs/protocol";
import { everything, inputsText } from "./recorded-inputs.js";
import { TapeRing } from "./ring.js";
import { ARRIVAL, ARRIVAL_FIELDS, ARRIVAL_FLAG, clockField, ENTRY, Tape } from "./tape.js";
import {
  BY_INSTANCE,
  endingOf,
  initialValue,
  TapedClock,
  TapedInstance,
  TapedScheduler,
  TapeHead,
} from "./taped-scheduler.js";

/** Options of `recordScheduling`. */
export interface SchedulingRecordingOptions {
  /** File that the recording is written to when the server closes; `save` writes it earlier. @default none */
  readonly file?: string;
  /** Length of the recording in seconds, from its first request on. @default 60 */
  readonly seconds?: number;
  /** Largest size of the recording, in bytes. @default 64 MiB */
  readonly maxBytes?: number;
  /**
   * Which time is kept: `"first"` ends the recording at its length or size, `"last"` goes on and drops what is older.
   * @default "first"
   */
  readonly keep?: "first" | "last";
}

/** A recording of what decides about the batches of a server. */
export interface SchedulingRecording extends Extension {
  /** False once it has been stopped, or is as long or as large as its options allow and keeps the first time. */
  readonly active: boolean;
  readonly byteLength: number;
  /** Ends the recording, and keeps its content. */
  stop(): void;
  /** What was recorded so far, in the form of a file. */
  bytes(): Uint8Array;
  save(file: string): Promise<void>;
}

/**
 * Records what decides about batches: arrivals, ends of batches, timers, cancellations and changes of instances, of all
 * models of a `Triton`. `replayScheduling` plays them through the same scheduler, and gets the same batches.
 *
 * A recording begins with its server, because the scheduler learns from everything before. With `keep: "last"` it drops
 * its beginning, and a replay begins at the first moment at which nothing waited or ran.
 *
 * @throws TritonError INVALID_ARG for options that are not positive numbers, and another `keep`
 * @example
 * ```ts
 * const tape = recordScheduling({ file: "minute.tape" });
 * const triton = new Triton({ extensions: [tape] });
 * ```
 */
export function recordScheduling(options: SchedulingRecordingOptions = {}): SchedulingRecording {
  const { seconds = 60, maxBytes = 64 * 1024 * 1024, keep = "first" } = options;
  for (const [name, value] of Object.entries({ seconds, maxBytes })) {
    if (!(value > 0))
      throw new TritonError(
        "INVALID_ARG",
        `recordScheduling ${name}: expected a number above 0, got ${value}`,
      );
  }
  if (keep !== "first" && keep !== "last") {
    throw new TritonError("INVALID_ARG", `recordScheduling keep: expected "first" or "last", got ${keep}`);
  }
  const ring = keep === "last" ? new TapeRing(seconds * 1000, maxBytes) : undefined;
  return new Recorder(seconds * 1000, maxBytes, options.file, ring);
}

/** Time that may pass within a step before the scheduler reads it anew. */
const STEP_MS = 0.1;

/** A request whose cancellation has begun, an instance that begins a batch, or a call of the scheduler. */
type Frame = InferenceRequest | "instance" | undefined;

class Recorder extends TapeHead implements SchedulingRecording {
  readonly name = "recordings";
  active = true;
  readonly #seqs = new WeakMap<InferenceRequest, number>();
  readonly #batches = new WeakMap<Payload, number>();
  readonly #values = new Map<number, number>();
  readonly #frames: Frame[] = [];
  readonly #models: TapedModel[] = [];
  #tape: Tape | undefined;
  #clock: Clock = realClock;
  #now = 0;
  #reads = 0;
  #arrivals = 0;
  #batchCount = 0;
  #endsAt = Number.POSITIVE_INFINITY;

  constructor(
    private readonly lengthMs: number,
    private readonly maxBytes: number,
    private readonly file: string | undefined,
    private readonly ring: TapeRing | undefined,
  ) {
    super();
  }

  get byteLength(): number {
    return this.ring?.byteLength || (this.#tape?.byteLength ?? 0);
  }

  stop(): void {
    this.active = false;
  }

  bytes(): Uint8Array {
    return this.#whole.bytes();
  }

  async save(file: string): Promise<void> {
    await this.#whole.save(file);
  }

  get #whole(): Tape {
    const tape = this.#opened;
    return this.ring === undefined || tape.length === 0 ? tape : this.ring.joined();
  }

  get #opened(): Tape {
    if (this.#tape === undefined) {
      throw new TritonError(
        "INVALID_ARG",
        "the recording has no server: give it to new Triton({ extensions })",
      );
    }
    return this.#tape;
  }

  attach({ clock, scheduling }: ExtensionServer): ExtensionParts {
    if (this.#tape !== undefined) {
      throw new TritonError(
        "INVALID_ARG",
        "recordScheduling(): expected a recording without a server, got one that has a server",
      );
    }
    this.#clock = clock;
    const cores = availableParallelism();
    this.#tape = new Tape({ library: VERSION, beganAt: Date.now(), cores, server: scheduling });
    this.ring?.rest.server(scheduling);
    return {
      around: (plan) => this.#open(plan),
      page: { data: () => undefined, file: () => this.bytes() },
      close: () => this.#end(),
    };
  }

  #open(plan: ModelPlan): AroundScheduling {
    const model = new TapedModel(this, this.#models.length, plan);
    this.#models.push(model);
    this.ring?.rest.model(plan);
    const { variableLength, batcher } = plan;
    this.#opened.models.push({
      name: plan.name,
      version: plan.version,
      config: everything(plan.config) as object,
      instances: planInstances(plan.config).map(({ name }) => name),
      mixedInputs: plan.mixedInputs === true,
      batchesByKey: variableLength?.grouping.batchBy !== undefined,
      maxBatchCost: variableLength?.grouping.maxBatchCost ?? null,
      padded: variableLength === undefined ? null : [...variableLength.padded],
      batcher: batcher?.name ?? null,
    });
    return model;
  }

  async #end(): Promise<void> {
    this.stop();
    if (this.file !== undefined) await this.save(this.file);
  }

  now(): number {
    if (!this.active) return this.#clock.now();
    if (this.isQuiet) return this.#now;
    this.#reads++;
    const time = this.#clock.now();
    if (time - this.#now > STEP_MS) {
      this.#now = time;
      this.#tape!.entry(ENTRY.time, -1, time, 1);
      this.#tape!.push(this.#reads);
    }
    return this.#now;
  }

  value(model: number, what: number, actual: number): number {
    if (!this.active || this.isQuiet) return actual;
    this.#reads++;
    const key = model * 65536 + what;
    if ((this.#values.get(key) ?? initialValue(what)) === actual) return actual;
    this.#values.set(key, actual);
    const tape = this.#tape!;
    tape.entry(ENTRY.value, model, this.#now, 3);
    tape.push(this.#reads);
    tape.push(what);
    tape.push(actual);
    return actual;
  }

  step(kind: number, model: number, ...fields: readonly number[]): void {
    if (!this.#begins(kind, model, fields.length)) return;
    for (const field of fields) this.#tape!.push(field);
    this.ring?.rest.happened(kind, model, fields[0]!, fields[1]!);
  }

  text(value: string): number {
    return this.active ? this.#tape!.text(value) : 0;
  }

  schedule(kind: number, _model: number, _id: number, delayMs: number, run: () => void): Timer {
    const rest = this.ring?.rest;
    if (rest === undefined) {
      if (kind === ENTRY.timer) return this.#clock.setTimer(delayMs, run);
      this.#clock.defer(run);
      return NO_TIMER;
    }
    rest.pending++;
    let isPending = true;
    const ends = () => {
      if (isPending) rest.pending--;
      isPending = false;
    };
    const endAndRun = () => {
      ends();
      run();
    };
    if (kind === ENTRY.defer) {
      this.#clock.defer(endAndRun);
      return NO_TIMER;
    }
    const timer = this.#clock.setTimer(delayMs, endAndRun);
    return {
      cancel: () => {
        ends();
        timer.cancel();
      },
    };
  }

  seqOf(request: InferenceRequest): number {
    return this.#seqs.get(request) ?? -1;
  }

  batchOf(payload: Payload): number {
    return this.#batches.get(payload) ?? -1;
  }

  arrive(model: number, request: InferenceRequest, isMoved: boolean): () => void {
    if (!this.active) return NOTHING;
    if (this.ring !== undefined) this.#turn(this.ring);
    const known = this.#seqs.get(request);
    const seq = known ?? this.#arrivals++;
    this.#seqs.set(request, seq);
    if (this.ring !== undefined) {
      if (known === undefined) this.ring.rest.arrived(seq);
    } else if (this.#endsAt === Number.POSITIVE_INFINITY) this.#endsAt = this.#clock.now() + this.lengthMs;
    if (!this.#begins(ENTRY.arrive, model, ARRIVAL_FIELDS)) return NOTHING;
    const { plan, rule } = this.#models[model]!;
    const limits = plan.batcher?.limits;
    const tape = this.#tape!;
    const at = tape.length;
    const { correlationId } = request;
    const flags =
      (request.sequenceStart ? ARRIVAL_FLAG.start : 0) |
      (request.sequenceEnd ? ARRIVAL_FLAG.end : 0) |
      (request.callers.length > 0 ? ARRIVAL_FLAG.partOfWork : 0) |
      (isMoved ? ARRIVAL_FLAG.moved : 0) |
      (typeof correlationId === "string" ? ARRIVAL_FLAG.textId : 0);
    tape.push(seq);
    tape.push(flags);
    tape.push(request.queueStart);
    tape.push(request.batchSize);
    tape.push(request.priority);
    tape.push(request.queueTimeoutMicroseconds);
    tape.push(request.deadline ?? Number.POSITIVE_INFINITY);
    tape.push(request.clientLimitMs);
    tape.push(lengthLimitOf(request) ?? 0);
    tape.push(this.text(request.id));
    tape.push(this.text(request.caller || String(request.parameters.caller ?? "")));
    tape.push(correlationId === undefined ? 0 : this.text(String(correlationId)));
    tape.push(this.text(inputsText(request.inputs, plan.config, rule)));
    tape.push(0);
    tape.push(0);
    tape.push(this.#parent);
    return () => {
      const { key, cost = 0 } = request.extra ?? {};
      // A ring may have begun another part meanwhile.
      const name = limits?.callerOf(request) ?? "";
      if (name !== "") tape.set(at + ARRIVAL.caller, tape.text(name));
      if (key !== undefined) tape.set(at + ARRIVAL.batchKey, tape.text(`${typeof key} ${key}`));
      tape.set(at + ARRIVAL.cost, cost);
    };
  }

  started(model: number, instance: number, payload: Payload): void {
    const number = this.#batchCount++;
    this.#batches.set(payload, number);
    if (!this.active) return;
    this.ring?.rest.started();
    const { requests, cut } = payload;
    const tape = this.#tape!;
    tape.entry(ENTRY.batch, model, this.#now, 4 + requests.length);
    tape.push(number);
    tape.push(instance);
    tape.push(this.text(cut ?? ""));
    tape.push(payload.batchSize);
    for (const request of requests) tape.push(this.seqOf(request));
  }

  override within<T>(call: () => T): T {
    this.#frames.push(undefined);
    try {
      return call();
    } finally {
      this.#frames.pop();
    }
  }

  override starting<T>(call: () => T): T {
    this.#frames.push("instance");
    try {
      return call();
    } finally {
      this.#frames.pop();
    }
  }

  cancelling(model: number, request: InferenceRequest): void {
    const seq = this.seqOf(request);
    const { cancelReason, executing } = request;
    const follows = this.#frames.length > 0 && this.#frames.at(-1) === undefined;
    if (seq >= 0 && (!follows || executing)) {
      const { code = "CANCELLED", reason = "" } = cancelReason ?? {};
      const parent = this.#parent;
      this.step(ENTRY.cancel, model, seq, this.text(code), this.text(reason), executing ? 1 : 0, parent);
    }
    this.#frames.push(request);
  }

  cancelled(): void {
    this.#frames.pop();
  }

  settled(model: number, request: InferenceRequest, error: TritonError | undefined): void {
    const seq = this.seqOf(request);
    if (seq >= 0) this.step(ENTRY.settled, model, seq, this.text(endingOf(error)), request.executing ? 1 : 0);
  }

  /** The request whose sender has caused what happens now, or an instance; -1 for neither. */
  get #parent(): number {
    const frame = this.#frames.at(-1);
    if (frame === "instance") return BY_INSTANCE;
    return frame === undefined ? -1 : this.seqOf(frame);
  }

  /** Begins a part of a ring, if it is time for one. */
  #turn(ring: TapeRing): void {
    const now = this.#clock.now();
    const next = ring.next(now, this.#frames.length === 0);
    if (next === "none") return;
    const { about, models } = this.#tape!;
    const tape = new Tape({ ...about, beganAt: Date.now() }, models);
    this.#tape = tape;
    ring.add(tape, now);
    this.#now = Math.max(this.#now, now);
    const clocks = this.#models.map(({ clock }) => clock);
    tape.entry(ENTRY.begin, -1, this.#now, clockField(clocks.length));
    for (const value of [next === "replayable" ? 1 : 0, this.#arrivals, this.#batchCount]) tape.push(value);
    for (const [i, { timers, deferred }] of clocks.entries()) {
      for (const value of [ring.rest.loaded.has(i) ? 1 : 0, timers, deferred]) tape.push(value);
    }
    for (const [key, value] of this.#values) {
      tape.entry(ENTRY.value, Math.floor(key / 65536), this.#now, 3);
      for (const field of [0, key % 65536, value]) tape.push(field);
    }
  }

  /** Begins an entry. False if the recording is over. */
  #begins(kind: number, model: number, fields: number): boolean {
    if (!this.active || this.#tape === undefined) return false;
    const now = this.#clock.now();
    if (now >= this.#endsAt || (this.ring === undefined && this.#tape.byteLength >= this.maxBytes)) {
      this.#tape.entry(ENTRY.full, -1, now, 0);
      this.stop();
      return false;
    }
    if (this.#tape.length === 0) {
      this.#tape.about.beganAt = Date.now();
      this.ring?.add(this.#tape, now);
    }
    this.#now = Math.max(this.#now, now);
    this.#reads = 0;
    this.#tape.entry(kind, model, this.#now, fields);
    return true;
  }
}

/** The tape of one model. */
class TapedModel implements AroundScheduling {
  readonly clock: TapedClock;
  readonly rule: EqualInputsRule;
  #instances = 0;

  constructor(
    private readonly head: Recorder,
    private readonly number: number,
    readonly plan: ModelPlan,
  ) {
    const { config, variableLength, mixedInputs } = plan;
    this.clock = new TapedClock(head, number);
    this.rule = new EqualInputsRule(config, variableLength?.padded, mixedInputs);
  }

  instance(...[placement, executor, model]: Parameters<AroundScheduling["instance"]>): TapedInstance {
    return new TapedInstance(this.head, this.number, this.#instances++, placement, executor, model);
  }

  scheduler(...[inner, group]: Parameters<AroundScheduling["scheduler"]>): TapedScheduler {
    return new TapedScheduler(this.head, this.number, inner, group);
  }

  cancelling(request: InferenceRequest): void {
    this.head.cancelling(this.number, request);
  }

  cancelled(): void {
    this.head.cancelled();
  }

  settled(request: InferenceRequest, error: TritonError | undefined): void {
    this.head.settled(this.number, request, error);
  }
}

const NOTHING = () => {};
const NO_TIMER: Timer = { cancel: NOTHING };
