import type { Executor } from "@tritonjs/core/backend";
import type { Batcher, UnbatchedModel } from "@tritonjs/core/extension";
import { planInstances } from "@tritonjs/core/extension";
import {
  createRateLimiter,
  createScheduler,
  DeadlineQueue,
  InferenceRequest,
  InstanceGroup,
  type InstanceModel,
  ModelStatistics,
  type Payload,
  type PlannedInstance,
  type RateLimiter,
  type RequestObserver,
  type Scheduler,
  type Timer,
} from "@tritonjs/core/internal";
import { type ErrorCode, type ErrorReason, type ModelConfig, TritonError } from "@tritonjs/protocol";
import { inputsOf } from "./recorded-inputs.js";
import {
  ARRIVAL,
  ARRIVAL_FLAG,
  BEGIN,
  CLOCK,
  clockField,
  ENTRY,
  type RecordedModel,
  type Tape,
  TapeReader,
} from "./tape.js";
import {
  BY_INSTANCE,
  endingOf,
  initialValue,
  TapedClock,
  TapedInstance,
  TapedScheduler,
  TapeHead,
} from "./taped-scheduler.js";

/** Where a replay differs from its recording. */
export interface ReplayDifference {
  /** Milliseconds from the beginning of the recording. */
  readonly atMs: number;
  /** Model of the event; empty for the rate limiter. */
  readonly model: string;
  readonly expected: string;
  readonly got: string;
}

/** Options of {@link replayScheduling}. */
export interface SchedulingReplayOptions {
  /**
   * The batchers of models that had another one than Triton's: `configuredBatchers()` of `@tritonjs/scheduling`.
   * @default only Triton's
   */
  readonly batcherOf?: (model: UnbatchedModel) => Batcher | undefined;
}

/** Outcome of {@link replayScheduling}. */
export interface SchedulingReplay {
  /**
   * Where the replay began, in milliseconds from the beginning of the recording. Not 0 for a recording of the last
   * seconds whose first moments depend on what it has dropped.
   */
  readonly fromMs: number;
  readonly requests: number;
  /** Batches that were formed again. */
  readonly batches: number;
  /** True if all batches had the same requests, in the same order, at the same instance and the same time. */
  readonly identical: boolean;
  readonly difference: ReplayDifference | undefined;
}

/**
 * Plays a recording through the scheduler of this library, and compares each batch with the recorded one: its requests
 * and their order, its instance, why it was cut, and its time, bit for bit. It ends at the first difference.
 *
 * @throws TritonError INVALID_ARG for a recording with a configuration that cannot be served, UNSUPPORTED for a recording
 * of the last seconds without a moment at which nothing waited or ran
 * @example
 * ```ts
 * const { identical, batches } = await replayScheduling(await Tape.read("minute.tape"));
 * ```
 */
export async function replayScheduling(
  tape: Tape,
  { batcherOf }: SchedulingReplayOptions = {},
): Promise<SchedulingReplay> {
  return new Player(tape, batcherOf).play();
}

/** Promise turns from the end of a batch to its last effect, with some to spare. */
const TURNS = 12;

class Player extends TapeHead {
  readonly #reader: TapeReader;
  readonly #models: PlayedModel[];
  readonly #seqs = new Map<InferenceRequest, number>();
  readonly #requests = new Map<number, InferenceRequest>();
  readonly #batches = new Map<Payload, number>();
  /** The last batch that each request was in. */
  readonly #lastBatch = new WeakMap<InferenceRequest, number>();
  readonly #ends = new Map<number, { readonly payload: Payload; readonly end: () => void }>();
  readonly #values = new Map<number, number>();
  readonly #scheduled = new Map<string, () => void>();
  readonly limiter: RateLimiter | undefined;
  #now: number;
  #reads = 0;
  #isOver = false;
  #difference: ReplayDifference | undefined;
  #arrivals = 0;
  #batchCount = 0;
  #firstBatch = 0;
  readonly #began: number;
  readonly #fromMs: number;

  constructor(
    readonly tape: Tape,
    readonly batcherOf: SchedulingReplayOptions["batcherOf"],
  ) {
    super();
    this.#reader = new TapeReader(tape);
    this.#began = tape.length > 0 ? this.#reader.time : 0;
    this.#now = this.#began;
    const { rateLimit, rateLimitResources } = tape.about.server;
    this.limiter = createRateLimiter(rateLimit, rateLimitResources);
    this.#models = tape.models.map((model, number) => new PlayedModel(this, number, model));
    if (this.#reader.kind === ENTRY.begin) this.#findBeginning();
    this.#fromMs = this.#now - this.#began;
  }

  /** Moves to the first part of a ring that may be replayed. */
  #findBeginning(): void {
    const reader = this.#reader;
    while (!reader.done && !(reader.kind === ENTRY.begin && reader.field(BEGIN.replayable) === 1))
      reader.next();
    if (reader.done) {
      throw new TritonError(
        "UNSUPPORTED",
        "the recording of the last seconds cannot be replayed: expected a moment at which nothing waited or ran, and " +
          "models that neither learn nor have sequences, got none; its requests can be explained",
      );
    }
    this.#now = reader.time;
    this.#batchCount = reader.field(BEGIN.batch);
    this.#firstBatch = this.#batchCount;
  }

  /** Lets a clock number its calls as at the beginning of a part. */
  #resume(clock: TapedClock, number: number): void {
    const at = clockField(number);
    clock.timers = this.#reader.field(at + CLOCK.timers);
    clock.deferred = this.#reader.field(at + CLOCK.deferred);
  }

  async play(): Promise<SchedulingReplay> {
    await Promise.all(this.#models.map((model) => model.load()));
    if (this.#reader.kind === ENTRY.begin) {
      for (const [number, model] of this.#models.entries()) {
        this.#resume(model.clock, number);
        if (this.#reader.field(clockField(number) + CLOCK.loaded) === 1) model.resume();
      }
    }
    while (!this.#isOver && this.#skipReadings()) await this.#advance();
    const difference = this.#difference;
    return {
      fromMs: this.#fromMs,
      requests: this.#arrivals,
      batches: this.#batchCount - this.#firstBatch,
      identical: difference === undefined,
      difference,
    };
  }

  /** A recording may end in the middle of a step. */
  #unlessEnded(got: string): void {
    const reader = this.#reader;
    if (reader.done || reader.kind === ENTRY.full) this.#isOver = true;
    else this.#differs(this.#shown(), got);
  }

  /** Ends the replay at its first difference. Later actions of the scheduler are ignored. */
  #differs(expected: string, got: string): void {
    if (this.#isOver) return;
    this.#isOver = true;
    const reader = this.#reader;
    const model = reader.done ? undefined : this.tape.models[reader.model];
    this.#difference = { atMs: this.#now - this.#began, model: model?.name ?? "", expected, got };
  }

  /** Performs the next event. The actions that follow from it read their own entries. */
  async #advance(): Promise<void> {
    const reader = this.#reader;
    const at = reader.at;
    const { kind } = reader;
    const what = kind === ENTRY.batch ? this.#shown() : NAMES.get(kind)!;
    const ending = kind === ENTRY.ended ? this.#ends.get(reader.field(0)) : undefined;
    this.#trigger(kind);
    if (kind !== ENTRY.arrive && kind !== ENTRY.timer && kind !== ENTRY.defer) {
      for (let turn = 0; turn < TURNS; turn++) await undefined;
    }
    if (ending !== undefined) this.#ran(ending.payload);
    if (reader.at === at) this.#differs(what, "no such event");
  }

  #trigger(kind: number): void {
    const reader = this.#reader;
    const model = this.#models[reader.model];
    const first = reader.fields > 0 ? reader.field(0) : 0;
    switch (kind) {
      case ENTRY.arrive:
        this.#arrive(model!);
        break;
      case ENTRY.timer:
      case ENTRY.defer: {
        const key = keyOf(kind, reader.model, first);
        const run = this.#scheduled.get(key);
        this.#scheduled.delete(key);
        run?.();
        break;
      }
      case ENTRY.ended:
        this.#ends.get(first)?.end();
        break;
      case ENTRY.room:
        model!.freed(first);
        break;
      case ENTRY.health:
        model!.changeHealth(first, reader.field(1) === 1, this.#whyDead(reader.field(2), reader.field(3)));
        break;
      case ENTRY.cancel:
        this.#cancel();
        break;
      case ENTRY.settled:
        this.#answer(first);
        break;
      case ENTRY.released:
        this.#requests.get(first)?.release(reader.field(1) === 1);
        break;
      case ENTRY.stop:
        model!.scheduler.stop();
        break;
      case ENTRY.failQueued:
        model!.scheduler.failQueued(this.#error(first, reader.field(1)));
        break;
      case ENTRY.loaded:
        model!.loaded();
        break;
      case ENTRY.join:
        model!.join(reader.field(1), first);
        break;
      case ENTRY.retire:
      case ENTRY.closing:
        model!.retire(first, kind === ENTRY.retire);
        break;
      case ENTRY.full:
        reader.at = this.tape.length;
        break;
      default:
        this.#differs(this.#shown(), "nothing");
    }
  }

  #arrive(model: PlayedModel): void {
    const reader = this.#reader;
    const field = (name: keyof typeof ARRIVAL) => reader.field(ARRIVAL[name]);
    const flags = field("flags");
    const id = this.tape.textOf(field("correlationId"));
    const maxTokens = field("maxTokens");
    const deadline = field("deadline");
    const request = new InferenceRequest(model.recorded.name, {
      inputs: model.inputsOf(this.tape.textOf(field("inputs"))),
      id: this.tape.textOf(field("id")),
      priority: field("priority"),
      queueTimeoutMicroseconds: field("timeoutMicroseconds"),
      ...(deadline < Number.POSITIVE_INFINITY && { deadline }),
      clientLimitMs: field("limitMs"),
      caller: this.tape.textOf(field("caller")),
      ...(id !== "" && { correlationId: (flags & ARRIVAL_FLAG.textId) === 0 ? BigInt(id) : id }),
      sequenceStart: (flags & ARRIVAL_FLAG.start) !== 0,
      sequenceEnd: (flags & ARRIVAL_FLAG.end) !== 0,
      ...(maxTokens > 0 && { parameters: { max_tokens: maxTokens } }),
      ...((flags & ARRIVAL_FLAG.partOfWork) !== 0 && { callers: ["recorded"] }),
    });
    request.batchSize = field("batchSize");
    request.queueStart = field("queueStart");
    request.owner = model;
    request.sender = { receive: () => this.#delivered(request) };
    const seq = field("seq");
    this.#seqs.set(request, seq);
    this.#requests.set(seq, request);
    model.batchKey = field("batchKey");
    model.batchCost = field("cost");
    try {
      model.scheduler.enqueue(request, (flags & ARRIVAL_FLAG.moved) !== 0);
    } catch (error) {
      if (!(error instanceof TritonError)) throw error;
      this.askCause(model.scheduler, request);
      this.forget(request);
    }
  }

  /** The sender of a request knows that it is over: what it did at once comes next on the tape. */
  #delivered(request: InferenceRequest): void {
    const seq = this.seqOf(request);
    if (seq >= 0) this.#follow(seq);
  }

  /** Lets arrivals and cancellations happen that a request or an instance has caused. */
  #follow(cause: number): void {
    const reader = this.#reader;
    while (!this.#isOver) {
      const { kind } = reader;
      const isArrival = kind === ENTRY.arrive && reader.field(ARRIVAL.parent) === cause;
      if (!isArrival && !(kind === ENTRY.cancel && reader.field(4) === cause)) return;
      const { at } = reader;
      this.#trigger(kind);
      if (reader.at === at) return;
    }
  }

  /** Answers a request as its model did. */
  #answer(seq: number): void {
    const request = this.#requests.get(seq);
    const outcome = this.tape.textOf(this.#reader.field(1));
    if (outcome === "") request?.finish();
    else request?.respondError(new TritonError(outcome as ErrorCode, "as recorded"));
  }

  #cancel(): void {
    const reader = this.#reader;
    const request = this.#requests.get(reader.field(0));
    request?.cancel(this.#error(reader.field(1), reader.field(2)));
  }

  #whyDead(code: number, reason: number): TritonError | undefined {
    return this.tape.textOf(code) === "" ? undefined : this.#error(code, reason);
  }

  #error(code: number, reason: number): TritonError {
    const why = this.tape.textOf(reason) as ErrorReason | "";
    return new TritonError(
      this.tape.textOf(code) as ErrorCode,
      "as recorded",
      why === "" ? {} : { reason: why },
    );
  }

  now(): number {
    if (this.isQuiet) return this.#now;
    this.#reads++;
    const reader = this.#reader;
    if (reader.kind === ENTRY.time && reader.field(0) === this.#reads) {
      this.#now = reader.time;
      reader.next();
    }
    return this.#now;
  }

  value(model: number, what: number): number {
    if (!this.isQuiet) this.#reads++;
    const reader = this.#reader;
    const key = model * 65536 + what;
    if (
      !this.isQuiet &&
      reader.kind === ENTRY.value &&
      reader.model === model &&
      reader.field(0) === this.#reads
    ) {
      this.#values.set(key, reader.field(2));
      reader.next();
    }
    return this.#values.get(key) ?? initialValue(what);
  }

  step(kind: number, model: number, ...fields: readonly number[]): void {
    if (this.#isOver) return;
    this.#skipReadings();
    const reader = this.#reader;
    const isSame =
      reader.kind === kind &&
      reader.model === model &&
      fields.every((field, i) => Object.is(reader.field(i), field));
    if (!isSame) {
      this.#unlessEnded(shownStep(kind, fields));
      return;
    }
    this.#now = reader.time;
    this.#reads = 0;
    reader.next();
  }

  text(value: string): number {
    return this.tape.text(value);
  }

  schedule(kind: number, model: number, id: number, _delayMs: number, run: () => void): Timer {
    const key = keyOf(kind, model, id);
    this.#scheduled.set(key, run);
    return { cancel: () => this.#scheduled.delete(key) };
  }

  arrive(model: number, request: InferenceRequest): () => void {
    const reader = this.#reader;
    this.#skipReadings();
    if (reader.kind !== ENTRY.arrive || reader.model !== model || reader.field(0) !== this.seqOf(request)) {
      this.#differs(this.#shown(), "an arrival");
      return () => {};
    }
    this.#arrivals++;
    this.#now = reader.time;
    this.#reads = 0;
    reader.next();
    return () => {};
  }

  seqOf(request: InferenceRequest): number {
    return this.#seqs.get(request) ?? -1;
  }

  batchOf(payload: Payload): number {
    return this.#batches.get(payload) ?? -1;
  }

  started(model: number, instance: number, payload: Payload): void {
    if (this.#isOver) return;
    this.#skipReadings();
    const reader = this.#reader;
    const number = this.#batchCount++;
    this.#batches.set(payload, number);
    const { requests, cut, batchSize } = payload;
    const seqs = requests.map((request) => this.seqOf(request));
    const fields = [number, instance, this.text(cut ?? ""), batchSize, ...seqs];
    const isSame =
      reader.kind === ENTRY.batch &&
      reader.model === model &&
      reader.fields === fields.length &&
      fields.every((field, i) => reader.field(i) === field);
    const got = `batch ${number} of requests ${seqs.join(", ")} at instance ${instance}, cut by ${cut}`;
    if (!isSame) {
      this.#unlessEnded(got);
      return;
    }
    if (!Object.is(reader.time, this.#now)) {
      this.#differs(`batch ${number} at ${reader.time} ms`, `at ${this.#now} ms`);
      return;
    }
    reader.next();
  }

  /** Runs a batch until the tape has its end. */
  run(payload: Payload): Promise<void> {
    const number = this.batchOf(payload);
    const requests = payload.take();
    for (const request of requests) {
      this.#lastBatch.set(request, number);
      request.startExecution(NO_RUNNER);
    }
    // An instance ends requests whose time was over before their batch began, and its model may send others.
    this.#follow(BY_INSTANCE);
    return new Promise((resolve) => {
      this.#ends.set(number, { payload, end: resolve });
    });
  }

  /** Forgets the requests of a batch that has ended. */
  #ran(payload: Payload): void {
    this.#ends.delete(this.batchOf(payload));
    const number = this.batchOf(payload);
    for (const request of payload.requests) {
      // One that its model runs again is in another batch, or waits for one.
      if (request.settled && this.#lastBatch.get(request) === number) this.forget(request);
    }
    this.#batches.delete(payload);
  }

  forget(request: InferenceRequest): void {
    this.#requests.delete(this.seqOf(request));
    this.#seqs.delete(request);
  }

  /** The request is about to be cancelled: by an event of the tape, or by the scheduler. */
  cancelling(model: number, request: InferenceRequest): void {
    const reader = this.#reader;
    if (reader.kind !== ENTRY.cancel || reader.model !== model || reader.field(0) !== this.seqOf(request))
      return;
    this.#now = reader.time;
    this.#reads = 0;
    reader.next();
  }

  /** Asks why a request was late, where the server has asked. The question may change what the scheduler has learned. */
  askCause(scheduler: Scheduler, request: InferenceRequest): void {
    const reader = this.#reader;
    if (reader.kind === ENTRY.late && reader.field(0) === this.seqOf(request))
      scheduler.limits?.lateCause(request);
  }

  /** Applies readings that nothing has asked for: somebody outside the scheduler looked. False at the end of the tape. */
  #skipReadings(): boolean {
    const reader = this.#reader;
    for (;;) {
      if (reader.kind === ENTRY.time) this.#now = reader.time;
      else if (reader.kind === ENTRY.value) {
        this.#values.set(reader.model * 65536 + reader.field(1), reader.field(2));
      } else if (reader.kind !== ENTRY.begin) return !reader.done;
      reader.next();
    }
  }

  #shown(): string {
    const reader = this.#reader;
    if (reader.done) return "the end of the recording";
    const fields = Array.from({ length: reader.fields }, (_, i) => reader.field(i));
    if (reader.kind !== ENTRY.batch) return shownStep(reader.kind, fields);
    const [number, instance, cut, , ...seqs] = fields;
    const why = this.tape.textOf(cut!);
    return `batch ${number} of requests ${seqs.join(", ")} at instance ${instance}, cut by ${why}`;
  }
}

const NO_RUNNER = { givenUp() {} };

/** A model of the tape: its scheduler, and instances that compute nothing. */
class PlayedModel implements RequestObserver {
  readonly clock: TapedClock;
  readonly scheduler: TapedScheduler;
  readonly #group: InstanceGroup;
  readonly #config: ModelConfig;
  readonly #planned: readonly PlannedInstance[];
  readonly #instances: TapedInstance[] = [];
  readonly #inputs = new Map<string, ReturnType<typeof inputsOf>>();
  readonly #leaving = new Set<number>();
  /** Of the request that arrives. */
  batchKey = 0;
  batchCost = 0;

  constructor(
    private readonly player: Player,
    private readonly number: number,
    readonly recorded: RecordedModel,
  ) {
    const { mixedInputs, batchesByKey, maxBatchCost, padded } = recorded;
    this.#config = withoutHosting(recorded.config as ModelConfig);
    const clock = new TapedClock(player, number);
    this.clock = clock;
    this.#planned = planInstances(this.#config);
    const made = recorded.instances.map((_, i) => this.#make(this.#planned[i]!));
    this.#group = new InstanceGroup(made, clock, player.limiter);
    const { holdUntil, backlogHoldUntil } = player.tape.about.server;
    const inner = createScheduler(
      {
        config: this.#config,
        version: recorded.version,
        mixedInputs,
        variableLength:
          padded === null
            ? undefined
            : {
                grouping: {
                  batchBy: batchesByKey ? () => this.batchKey : undefined,
                  cost: maxBatchCost === null ? undefined : () => this.batchCost,
                  maxBatchCost: maxBatchCost ?? undefined,
                },
                padded: new Set(padded),
                padding: undefined,
              },
        batcher: this.#batcher(),
        initialStates: new Map(),
      },
      this.#group,
      { clock, deadlines: new DeadlineQueue(clock), statistics: new ModelStatistics() },
      { holdUntil, backlogHoldUntil, findMember: () => undefined as never },
    );
    this.scheduler = new TapedScheduler(player, number, inner, this.#group);
    this.#group.serve(this.scheduler);
  }

  /** @throws TritonError UNSUPPORTED for a batcher that the replay does not know */
  #batcher(): Batcher | undefined {
    const { name, version, batcher } = this.recorded;
    if (batcher === null) return undefined;
    const found = this.player.batcherOf?.({ name, version, config: this.#config, isGrouped: false });
    if (found !== undefined) return found;
    throw new TritonError(
      "UNSUPPORTED",
      `the recording of model '${name}' cannot be replayed: expected the batcher '${batcher}', got none: give batcherOf`,
    );
  }

  /** Loads the instances, which are not there before the tape says so. */
  async load(): Promise<void> {
    await Promise.all(this.#group.instances.map((instance) => this.#group.loader.load(instance)));
  }

  loaded(): void {
    for (const instance of this.#group.instances) instance.healthy = true;
    this.#group.dispatch();
    this.scheduler.lookAgain();
  }

  /** Begins as a model that was loaded before. */
  resume(): void {
    for (const instance of this.#group.instances) instance.healthy = true;
    this.scheduler.isLoaded = true;
  }

  freed(part: number): void {
    const instance = part < 0 ? this.#group.instances[0] : this.#instances[part];
    if (instance?.executor.onRoom === undefined) this.scheduler.slotFreed();
    else instance.executor.onRoom();
  }

  changeHealth(number: number, healthy: boolean, reason: TritonError | undefined): void {
    this.#instances[number]?.executor.onHealth?.(healthy, reason);
  }

  join(placement: number, number: number): void {
    const planned = this.#planned[placement] ?? this.#planned[0]!;
    const instance = this.#make(planned, number);
    if (this.player.limiter !== undefined) {
      instance.lease = this.player.limiter.register(planned);
    }
    this.#group.join(instance);
  }

  /** @param isGone true if the instance has left */
  retire(number: number, isGone: boolean): void {
    const instance = this.#instances[number];
    if (instance === undefined) return;
    if (!this.#leaving.has(number)) void this.#group.retire(instance);
    this.#leaving.add(number);
    if (isGone) this.scheduler.lookAgain();
  }

  inputsOf(text: string): ReturnType<typeof inputsOf> {
    let inputs = this.#inputs.get(text);
    if (inputs === undefined) {
      inputs = inputsOf(text);
      this.#inputs.set(text, inputs);
    }
    return inputs;
  }

  cancelling(request: InferenceRequest): void {
    this.player.cancelling(this.number, request);
  }

  settled(request: InferenceRequest, error: TritonError | undefined): void {
    const { player } = this;
    const seq = player.seqOf(request);
    if (seq < 0) return;
    player.step(ENTRY.settled, this.number, seq, player.text(endingOf(error)), request.executing ? 1 : 0);
    player.askCause(this.scheduler, request);
  }

  cancelled(request: InferenceRequest): void {
    if (!request.executing) this.player.forget(request);
  }

  #make(placement: PlannedInstance, number = this.#instances.length): TapedInstance {
    const { name, version } = this.recorded;
    const model = { modelName: name, modelVersion: String(version) } as InstanceModel;
    const made = new PlayedInstance(this.player, this.number, number, placement, new NoExecutor(), model);
    this.#instances[number] = made;
    return made;
  }
}

/** An instance whose batches end when the tape says so. */
class PlayedInstance extends TapedInstance {
  readonly #player: Player;

  constructor(
    player: Player,
    ...more: ConstructorParameters<typeof TapedInstance> extends [unknown, ...infer R] ? R : never
  ) {
    super(player, ...more);
    this.#player = player;
  }

  override get worn(): boolean {
    return false;
  }

  override async run(payload: Payload): Promise<void> {
    await this.#player.run(payload);
  }
}

class NoExecutor implements Executor {
  readonly details = {};
  readonly mustFinish = false;
  onRoom: Executor["onRoom"];
  onHealth: Executor["onHealth"];

  async start(): Promise<void> {}

  async stop(): Promise<void> {}

  async execute(): Promise<readonly never[]> {
    return [];
  }
}

/** The same configuration, whose instances are never recycled. */
function withoutHosting(config: ModelConfig): ModelConfig {
  const instanceGroup = config.instanceGroup.map(({ hosting: _, ...group }) => group);
  return { ...config, modelWarmup: [], instanceGroup } as ModelConfig;
}

function keyOf(kind: number, model: number, id: number): string {
  return `${kind} ${model} ${id}`;
}

const NAMES = new Map<number, string>(Object.entries(ENTRY).map(([name, kind]) => [kind, name]));

function shownStep(kind: number, fields: readonly number[]): string {
  return `${NAMES.get(kind) ?? `kind ${kind}`} ${fields.slice(0, 4).join(" ")}`.trim();
}
