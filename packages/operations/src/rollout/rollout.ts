import type { Clock, InferenceRequest, Log, ModelVersion, VersionRouter } from "@tritonjs/core/extension";
import { Alarm, quietTimers, type RequestObserver } from "@tritonjs/core/internal";
import { errorFor, TritonError } from "@tritonjs/protocol";
import type { SavedSketch } from "./drift-sketch.js";
import type { ResolvedRollout, RolloutStep } from "./rollout-options.js";
import { ShadowRequests } from "./shadow-requests.js";
import { type CallEnd, RoutedCall, type SavedProgress, StepProgress } from "./step-progress.js";
import { type SavedVerdict, type Verdict, VerdictEvidence } from "./verdict.js";

/** State of a rollout. `promoted` and `rolled_back` are its ends: all requests without a version get one version then. */
export type RolloutState = "running" | "paused" | "promoted" | "rolled_back";

/** A rollout at one moment. All of it can be written as JSON. */
export interface RolloutReport {
  readonly model: string;
  readonly from: number;
  readonly to: number;
  readonly state: RolloutState;
  /** Percentage of the requests without a version that the new version gets. */
  readonly share: number;
  /** Number of the present step, from 0 on; undefined without steps. */
  readonly step: number | undefined;
  readonly steps: readonly Required<RolloutStep>[];
  /** Seconds until the next step; undefined while none is due. */
  readonly nextStepInSeconds: number | undefined;
  /** Why the present step goes on although its time is over; undefined if it does not. */
  readonly waitsFor: string | undefined;
  /** Requests to the new version, and copies, that are not over. */
  readonly inFlight: number;
  readonly verdict: Verdict;
}

/** Events of a rollout. */
export interface RolloutEvent {
  readonly type: "started" | "step" | "share" | "paused" | "resumed" | "fault" | "promoted" | "rolled_back";
  /** Why, in words: the reasons of the verdict, or of the caller; empty for none. */
  readonly reason: string;
  readonly rollout: RolloutReport;
}

/** Saved state of a rollout, as JSON. */
export interface SavedRollout {
  readonly from: number;
  readonly to: number;
  readonly state: RolloutState;
  readonly share: number;
  readonly step: number;
  /** Milliseconds of the present step that have passed. */
  readonly stepMs: number;
  /** Undefined in a file of a version that counted requests in flight too. */
  readonly progress: SavedProgress | undefined;
  readonly seed: number;
  readonly evidence: SavedVerdict;
  readonly reasons: Verdict["reasons"];
}

/** The part of a server that a rollout needs. */
export interface RolloutServer {
  readonly clock: Clock;
  readonly log: Log;
  /** The version in service with a number; undefined for none. */
  version(model: string, namespace: string, version: number): ModelVersion | undefined;
  /** Makes the router known, again after each change of its version. */
  routed(model: string): void;
  /** The state has changed: it is saved, and listeners are told. */
  changed(rollout: LiveRollout, event: RolloutEvent): void;
}

/** Observations between two looks at the verdict. */
const LOOK_EVERY = 8;
/** Share of callers that may leave besides those who also leave the old version, if the verdict has no tolerance. */
const DEFAULT_TOLERANCE = 0.01;

/**
 * One rollout: divides the requests to a model that name no version, moves from step to step, and ends when its verdict
 * finds a fault.
 *
 * ```
 * running <--pause/resume--> paused
 *    |                         |
 *    +--promote--> promoted <--+     all requests to the new version
 *    +--roll back / fault--> rolled_back     all requests to the old version
 * ```
 */
export class LiveRollout implements VersionRouter {
  readonly evidence: VerdictEvidence;
  readonly #shadows: ShadowRequests | undefined;
  readonly #progress: StepProgress;
  readonly #random: () => number;
  readonly #salt: number;
  readonly #alarm: Alarm;
  #state: RolloutState = "running";
  #share: number;
  #step = 0;
  #stepStart: number;
  /** Milliseconds of the step before its last pause. */
  #stepMs = 0;
  /** Share of the requests that the new version got lately: keys with many requests make it differ from the share. */
  #measured: number | undefined;
  #observations = 0;
  #warned = false;
  #removed = false;

  constructor(
    readonly model: string,
    readonly namespace: string,
    readonly options: ResolvedRollout,
    private readonly server: RolloutServer,
    saved: SavedRollout | undefined,
  ) {
    const { from, to, limits, shadow, share } = options;
    const seed = saved?.seed ?? options.seed;
    this.evidence = new VerdictEvidence(limits, { old: from, new: to });
    this.#progress = new StepProgress(to, limits.errors?.tolerance ?? DEFAULT_TOLERANCE);
    this.#shadows = shadow && new ShadowRequests(shadow, server.clock, this.evidence, this.#progress);
    this.#random = randomNumbers(seed);
    this.#salt = hashOf(`${model}/${from}/${to}/${seed}`, 0);
    this.#alarm = new Alarm(quietTimers(server.clock) as Clock, () => this.#timeIsOver());
    this.#share = share;
    this.#stepStart = server.clock.now();
    if (saved !== undefined) this.#restore(saved);
    this.#setAlarm();
  }

  get from(): number {
    return this.options.from;
  }

  get to(): number {
    return this.options.to;
  }

  #version(version: number): ModelVersion | undefined {
    return this.server.version(this.model, this.namespace, version);
  }

  get state(): RolloutState {
    return this.#state;
  }

  get isOver(): boolean {
    return this.#state === "promoted" || this.#state === "rolled_back";
  }

  /** Percentage of the requests without a version that the new version gets. */
  get share(): number {
    if (this.#state === "promoted") return 100;
    return this.#state === "rolled_back" ? 0 : this.#share;
  }

  get version(): number {
    return this.#state === "promoted" ? this.to : this.from;
  }

  get keyHeader(): string | undefined {
    const { key } = this.options;
    return typeof key === "string" && key.startsWith("header:")
      ? key.slice("header:".length).toLowerCase()
      : undefined;
  }

  route(request: InferenceRequest, found: ModelVersion): ModelVersion {
    const [from, to] = [this.#version(this.from), this.#version(this.to)];
    const open = this.#sequenceVersion(request, [from, to]);
    if (open !== undefined) {
      if (!this.isOver) this.#follow(request, open === to, false);
      return open;
    }
    if (this.isOver || from === undefined || to === undefined) return found;
    const crash = to.instances.unhealthyReason;
    if (crash !== undefined) {
      this.lost(crash.message);
      return found;
    }
    this.#look(request);
    const isNew = this.#isNew(request);
    this.#measured = (this.#measured ?? this.#share / 100) * 0.998 + (isNew ? 0.002 : 0);
    this.#follow(request, isNew, true);
    if (!isNew && this.#shadows !== undefined) this.#shadow(request, from, to);
    return isNew ? to : from;
  }

  /** @param isEvidence false for the later requests of a sequence, whose version was not chosen by the share */
  #follow(request: InferenceRequest, isNew: boolean, isEvidence: boolean): void {
    const call = new ObservedCall(this, isNew, this.server.clock.now(), isEvidence);
    this.#progress.begin(call);
    request.observe(call);
  }

  /** A request is over. */
  ended(call: ObservedCall, how: CallEnd, request: InferenceRequest, startMs: number): void {
    const now = this.server.clock.now();
    // The verdict is also about answers of the response cache.
    const isCached = how === "answered" && !request.executing;
    this.#progress.end(call, isCached ? "unknown" : how, now);
    if (this.isOver || this.#removed) return;
    if (call.isEvidence && (how === "answered" || how === "failed")) {
      const failed = how === "failed";
      const observation = {
        isNew: call.isNew,
        failed,
        class: this.#classOf(request),
        start: startMs,
        end: now,
        key: this.#keyHash(request),
      };
      this.evidence.request(observation, Math.min(0.999, Math.max(this.#share / 100, this.#measured ?? 0)));
      this.judge(failed);
    }
    this.#endStep();
  }

  /** Looks at the verdict, not after each observation unless it has to. */
  judge(now = true): void {
    if (this.isOver || this.#removed || (!now && ++this.#observations % LOOK_EVERY !== 0)) return;
    if (!this.evidence.hasFault) return;
    const reason = this.#reasonText();
    switch (this.options.onFault) {
      case "rollback":
        this.rollBack(reason);
        break;
      case "pause":
        if (this.#state === "running" && !this.#warned) {
          this.#warned = true;
          this.#pause(reason);
        }
        break;
      case "report":
        if (this.#warned) return;
        this.#warned = true;
        this.server.log.warning(`rollout of model '${this.model}': ${reason}`, { model: this.model });
        this.#tell("fault", reason);
    }
  }

  /** The new version cannot answer any more. */
  lost(why: string): void {
    if (this.isOver || this.#removed) return;
    const text = `version ${this.to} is not in service: ${why}`;
    this.evidence.found({ check: "availability", subject: "", text });
    this.rollBack(text);
  }

  /** Changes the percentage of requests that the new version gets. Steps after the present one stay. */
  setShare(share: number): void {
    this.#assertLive("change the share of");
    if (!(share >= 0 && share <= 100)) {
      throw errorFor(
        "INVALID_ROLLOUT",
        `rollout of model '${this.model}': expected a percentage from 0 to 100 as the share, got ${share}`,
      );
    }
    this.#share = share;
    this.#measured = undefined;
    this.#tell("share");
  }

  pause(): void {
    this.#assertLive("pause");
    if (this.#state === "running") this.#pause("");
  }

  resume(): void {
    this.#assertLive("resume");
    if (this.#state === "running") return;
    this.#state = "running";
    this.#stepStart = this.server.clock.now();
    this.#setAlarm();
    this.#tell("resumed");
  }

  promote(): void {
    this.#assertLive("promote");
    if (this.#version(this.to) === undefined) {
      throw errorFor(
        "INVALID_ROLLOUT",
        `cannot promote version ${this.to} of model '${this.model}': it is not in service`,
      );
    }
    this.#end("promoted", "");
  }

  rollBack(reason = ""): void {
    this.#assertLive("roll back");
    this.#end("rolled_back", reason);
  }

  report(): RolloutReport {
    const { steps } = this.options;
    const due = this.#stepEndMs;
    return {
      model: this.model,
      from: this.from,
      to: this.to,
      state: this.#state,
      share: this.share,
      step: steps.length === 0 ? undefined : this.#step,
      steps,
      nextStepInSeconds:
        due === undefined ? undefined : Math.max(0, Math.round(due - this.server.clock.now()) / 1000),
      waitsFor: this.#isStepDue ? this.#obstacle : undefined,
      inFlight: this.#progress.inFlight,
      verdict: this.evidence.verdict(),
    };
  }

  /** The distributions of the inputs, as `verdict.drift.reference` of a later rollout. */
  references(): Record<string, SavedSketch> {
    return this.evidence.references;
  }

  save(): SavedRollout {
    return {
      from: this.from,
      to: this.to,
      state: this.#state,
      share: this.#share,
      step: this.#step,
      stepMs: this.#passedMs,
      progress: this.#progress.save(this.server.clock.now()),
      seed: this.options.seed,
      evidence: this.evidence.save(),
      reasons: this.isOver ? this.evidence.reasons() : [],
    };
  }

  /** Ends the timer: the rollout was replaced, or its server closes. */
  close(): void {
    this.#removed = true;
    this.#alarm.callOff();
  }

  #restore({ state, share, step, stepMs, progress, evidence, reasons }: SavedRollout): void {
    this.#state = state;
    this.#share = share;
    this.#step = Math.min(step, Math.max(0, this.options.steps.length - 1));
    this.#stepMs = stepMs;
    if (progress !== undefined) this.#progress.restore(progress);
    this.evidence.restore(evidence);
    for (const reason of reasons) if (reason.check === "availability") this.evidence.found(reason);
  }

  /** The version that has the open sequence of a request: it answers all of the sequence. */
  #sequenceVersion(
    request: InferenceRequest,
    versions: readonly (ModelVersion | undefined)[],
  ): ModelVersion | undefined {
    if (request.correlationId === undefined || request.sequenceStart) return undefined;
    return versions.find((version) => version?.scheduler.hasSequence?.(request) === true);
  }

  #isNew(request: InferenceRequest): boolean {
    if (this.#share === 0) return false;
    if (this.#share === 100) return true;
    const hash = this.#keyHash(request);
    const place = hash === 0 ? this.#random() : hash / 2 ** 32;
    return place * 100 < this.#share;
  }

  /** Hash of the key of a request; 0 for a request without one. */
  #keyHash(request: InferenceRequest): number {
    const key = this.#keyOf(request);
    return key === undefined || key === "" ? 0 : hashOf(String(key), this.#salt) || 1;
  }

  #keyOf(request: InferenceRequest): unknown {
    const { key } = this.options;
    if (key === undefined) return request.correlationId;
    if (typeof key === "string") {
      const name = key.slice(key.indexOf(":") + 1);
      if (key.startsWith("header:") && request.routingKey !== "") return request.routingKey;
      return request.parameters[name];
    }
    try {
      return key(request);
    } catch (error) {
      this.#warn("the function of the key", error);
      return undefined;
    }
  }

  #classOf(request: InferenceRequest): string {
    const { classOf } = this.options;
    if (classOf === undefined) {
      const rows = 2 ** Math.floor(Math.log2(Math.max(1, request.rows)));
      return request.priority === 0 ? `rows ${rows}` : `priority ${request.priority}, rows ${rows}`;
    }
    try {
      return String(classOf(request));
    } catch (error) {
      this.#warn("the function of latency classes", error);
      return "other";
    }
  }

  #warn(what: string, error: unknown): void {
    if (this.#warned) return;
    this.#warned = true;
    this.server.log.warning(
      `rollout of model '${this.model}': ${what} failed: ${TritonError.from(error).message}`,
      { model: this.model },
    );
  }

  /** Looks at the inputs. A request that cannot be read is refused by its validation. */
  #look(request: InferenceRequest): void {
    try {
      this.evidence.inputs(request.inputs, this.#random);
    } catch {
      // See above.
    }
  }

  #shadow(request: InferenceRequest, from: ModelVersion, to: ModelVersion): void {
    try {
      this.#shadows!.follow(request, from, to, () => {
        this.judge(false);
        this.#endStep();
      });
    } catch {
      // See above.
    }
  }

  get #passedMs(): number {
    const running = this.#state === "running" ? this.server.clock.now() - this.#stepStart : 0;
    return this.#stepMs + running;
  }

  /** Time at which the present step is over; undefined without one, and while the rollout does not run. */
  get #stepEndMs(): number | undefined {
    const step = this.options.steps[this.#step];
    if (step === undefined || this.#state !== "running") return undefined;
    return this.#stepStart + step.forSeconds * 1000 - this.#stepMs;
  }

  get #isStepDue(): boolean {
    const end = this.#stepEndMs;
    return end !== undefined && this.server.clock.now() >= end;
  }

  #setAlarm(): void {
    this.#alarm.callOff();
    const end = this.#stepEndMs;
    if (end !== undefined && !this.#removed) this.#alarm.set(Math.max(0, end - this.server.clock.now()));
  }

  /** Why the present step cannot end; undefined if it can, or if there is none. */
  get #obstacle(): string | undefined {
    const { steps } = this.options;
    const step = steps[this.#step];
    const isLast = this.#step + 1 === steps.length;
    return step && this.#progress.obstacle(step.minRequests, isLast, this.server.clock.now());
  }

  /** The time of the present step is over. If the step cannot end yet, the log says why. */
  #timeIsOver(): void {
    this.#endStep();
    const obstacle = this.#isStepDue ? this.#obstacle : undefined;
    if (obstacle === undefined) return;
    this.server.log.info(`rollout of model '${this.model}' stays at ${this.#share}%: ${obstacle}`, {
      model: this.model,
      version: String(this.to),
    });
  }

  /** Begins the next step, once the time of the present one is over and nothing stands in its way. */
  #endStep(): void {
    if (this.#removed || !this.#isStepDue || this.#obstacle !== undefined) return;
    const { steps, promote } = this.options;
    this.judge();
    if (this.#state !== "running") return;
    if (this.#step + 1 < steps.length) {
      this.#step++;
      this.#share = steps[this.#step]!.share;
      this.#measured = undefined;
      this.#stepMs = 0;
      this.#progress.nextStep();
      this.#stepStart = this.server.clock.now();
      this.#setAlarm();
      this.#tell("step");
      return;
    }
    if (promote === "auto" && this.#version(this.to) !== undefined) this.promote();
  }

  #pause(reason: string): void {
    this.#stepMs = this.#passedMs;
    this.#state = "paused";
    this.#alarm.callOff();
    this.#tell("paused", reason);
  }

  #end(state: "promoted" | "rolled_back", reason: string): void {
    this.#stepMs = this.#passedMs;
    this.#state = state;
    this.#alarm.callOff();
    this.server.routed(this.model);
    this.#tell(state, reason);
  }

  #reasonText(): string {
    return this.evidence
      .reasons()
      .map(({ text }) => text)
      .join("; ");
  }

  #assertLive(what: string): void {
    if (!this.isOver && !this.#removed) return;
    const state = this.#removed ? "was replaced or removed" : `is ${this.#state.replace("_", " ")}`;
    throw errorFor(
      "INVALID_ROLLOUT",
      `cannot ${what} the rollout of model '${this.model}' from version ${this.from} to ${this.to}: it ${state}`,
    );
  }

  #tell(type: RolloutEvent["type"], reason = ""): void {
    this.server.changed(this, { type, reason, rollout: this.report() });
  }
}

/** Reports the end of a request to its rollout. */
class ObservedCall extends RoutedCall implements RequestObserver {
  constructor(
    private readonly rollout: LiveRollout,
    isNew: boolean,
    startMs: number,
    readonly isEvidence: boolean,
  ) {
    super(isNew, startMs);
  }

  settled(request: InferenceRequest, error: TritonError | undefined): void {
    const how = error === undefined ? "answered" : error.code === "CANCELLED" ? "left" : "failed";
    this.rollout.ended(this, how, request, request.queueStart);
  }

  refused(request: InferenceRequest, error: unknown): void {
    // The fault of a request that is invalid is not the version's: both have the same inputs.
    const how = TritonError.from(error).code === "INVALID_ARG" ? "unknown" : "failed";
    this.rollout.ended(this, how, request, this.startMs);
  }
}

/** Hash of a text, evenly spread over 32 bits: FNV-1a and the mixer of MurmurHash3. */
function hashOf(text: string, salt: number): number {
  let hash = (0x811c9dc5 ^ salt) >>> 0;
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return (hash ^ (hash >>> 16)) >>> 0;
}

/** Random numbers from 0 to 1: mulberry32. */
function randomNumbers(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), state | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}
