import { hostNameOf, nextPause, ServerAddresses } from "@tritonjs/client/internal";
import { errorFor, onAbort, TritonError } from "@tritonjs/protocol";
import { openReplicaClient, protocolOf, type RemoteSettings, type ReplicaClient } from "./replica-client.js";

/** Longest time for a probe. A ready server answers at once. */
const PROBE_TIMEOUT_MS = 5_000;

/** Longest time for a probe of a replica with calls in flight, shorter because those calls wait for it. */
const HANG_PROBE_TIMEOUT_MS = 2_000;

/** Time without an answer to a call after which a replica is probed, and interval in which this is looked at. */
const QUIET_MS = 1_000;

const DEFAULT_PORTS = { grpc: 8001, http: 8000 };

/**
 * The replicas of a model and their health. A replica that fails gets no calls. It is probed, with growing pauses,
 * until it reports that the model is ready again. A serving replica is probed only while its calls get no answer: if it
 * does not answer the probe either, it hangs and is taken out. Names are looked up every `lookupIntervalMs`.
 */
export class ReplicaPool {
  /** Called when the number of free slots may have grown, and when the health changes. */
  readonly onChange = new Set<() => void>();
  readonly #addresses: ServerAddresses;
  readonly #closed = new AbortController();
  replicas: readonly Replica[] = [];
  #turn = 0;
  #lookUpFault: TritonError | undefined;
  #timer: ReturnType<typeof setTimeout> | undefined;
  /** Set while calls are in flight: one timer for all of them. */
  #watch: ReturnType<typeof setTimeout> | undefined;

  /** @param open opens the client of a replica */
  constructor(
    readonly settings: RemoteSettings,
    private readonly open = (url: string) => openReplicaClient(url, settings),
  ) {
    const name = settings.urls.find((url) => hostNameOf(url, 0) !== undefined);
    const port = DEFAULT_PORTS[protocolOf(name ?? settings.urls[0]!, settings.protocol)];
    this.#addresses = new ServerAddresses(settings.urls, settings, port);
    this.#update(this.#addresses.current);
    if (this.#addresses.areNames) void this.#lookUp();
  }

  /** Batches that the replicas could take now. */
  get free(): number {
    let free = 0;
    for (const { serving, outstanding } of this.replicas) {
      if (serving) free += Math.max(0, this.settings.concurrency - outstanding);
    }
    return free;
  }

  get isServing(): boolean {
    return this.replicas.some(({ serving }) => serving);
  }

  /** Reason why no call can run. Set once a probe of each replica has failed. */
  get reason(): TritonError | undefined {
    if (this.replicas.length === 0) return this.#lookUpFault;
    if (this.replicas.some(({ serving, reason }) => serving || reason === undefined)) return undefined;
    return this.replicas[0]!.reason;
  }

  get closed(): boolean {
    return this.#closed.signal.aborted;
  }

  /**
   * Takes a slot of the serving replica with the fewest calls in flight. The caller gives it back with `release`.
   *
   * @param idleOnly false also takes a replica without a free slot, for a call that has already left the queue
   * @returns undefined if there is none
   */
  take(idleOnly: boolean, tried?: ReadonlySet<Replica>): Replica | undefined {
    const { length } = this.replicas;
    this.#turn = (this.#turn + 1) % Math.max(1, length);
    let best: Replica | undefined;
    for (let i = 0; i < length; i++) {
      const replica = this.replicas[(this.#turn + i) % length]!;
      if (!replica.serving || tried?.has(replica)) continue;
      if (idleOnly && replica.outstanding >= this.settings.concurrency) continue;
      if (best === undefined || replica.outstanding < best.outstanding) best = replica;
    }
    if (best !== undefined) this.#begin(best);
    return best;
  }

  /** Takes a slot of one replica, even if it has none free; false if it does not serve. */
  takeThis(replica: Replica): boolean {
    if (!replica.serving) return false;
    this.#begin(replica);
    return true;
  }

  release(replica: Replica): void {
    replica.outstanding--;
    if (replica.removed && replica.outstanding === 0) replica.client.close();
    this.#changed();
  }

  /**
   * Takes a replica out after a failed call, and probes it: at once after the first failure, else after a pause.
   *
   * @param atLeastMs pause that the replica asked for
   */
  failed(replica: Replica, atLeastMs = 0): void {
    if (!replica.serving) return;
    replica.serving = false;
    const { isFresh } = replica;
    const pauseMs = replica.nextPauseMs();
    this.#probeAfter(replica, Math.max(isFresh ? 0 : pauseMs, Number.isFinite(atLeastMs) ? atLeastMs : 0));
    this.#changed();
  }

  /**
   * Resolves when a replica serves, or when none is expected to serve soon. Resolves at once if a replica serves now.
   *
   * @param signal ends the wait
   */
  async untilServing(signal: AbortSignal): Promise<void> {
    while (!this.isServing && this.reason === undefined && !signal.aborted && !this.closed) {
      await this.#nextChange(signal);
    }
  }

  /**
   * Resolves with the first replica that serves.
   *
   * @throws TritonError UNAVAILABLE with the reason of one replica, when none is ready in `initTimeoutMs`.
   */
  async firstServing(): Promise<Replica> {
    const { initTimeoutMs, model } = this.settings;
    const tooLate = new AbortController();
    const timer =
      initTimeoutMs === Number.POSITIVE_INFINITY
        ? undefined
        : setTimeout(() => tooLate.abort(), initTimeoutMs);
    try {
      for (;;) {
        const found = this.replicas.find(({ serving }) => serving);
        if (found !== undefined) return found;
        if (this.closed) throw closedError(model);
        if (tooLate.signal.aborted) break;
        await this.#nextChange(tooLate.signal);
      }
    } finally {
      clearTimeout(timer);
    }
    const cause = this.reason;
    const why = cause === undefined ? "" : `: ${cause.message}`;
    const text = `no replica of model '${model}' was ready within ${initTimeoutMs} ms${why}`;
    throw errorFor("INSTANCES_FAILED", text, { cause });
  }

  close(): void {
    if (this.closed) return;
    this.#closed.abort(closedError(this.settings.model));
    clearTimeout(this.#timer);
    clearTimeout(this.#watch);
    for (const replica of this.replicas) this.#drop(replica);
    this.replicas = [];
    this.#changed();
  }

  #begin(replica: Replica): void {
    replica.outstanding++;
    replica.waitsSince ??= Date.now();
    if (this.#watch !== undefined || this.closed) return;
    this.#watch = setTimeout(() => this.#lookForHangs(), QUIET_MS);
    this.#watch.unref?.();
  }

  #lookForHangs(): void {
    const before = Date.now() - QUIET_MS;
    let isBusy = false;
    for (const replica of this.replicas) {
      if (replica.outstanding === 0) continue;
      isBusy = true;
      const isQuiet = replica.waitsSince !== undefined && replica.waitsSince <= before;
      if (replica.serving && isQuiet && !replica.isSuspected) void this.#suspect(replica);
    }
    this.#watch = isBusy ? setTimeout(() => this.#lookForHangs(), QUIET_MS) : undefined;
    this.#watch?.unref?.();
  }

  /**
   * Probes a replica whose calls get no answer. A replica that hangs, such as a stopped process, is taken out, and its
   * calls go to other replicas. The only replica that serves is left alone: there is no other place for its calls.
   */
  async #suspect(replica: Replica): Promise<void> {
    replica.isSuspected = true;
    const { waitsSince } = replica;
    const begun = Date.now();
    let hangs = false;
    try {
      await replica.client.isReady({ timeoutMs: HANG_PROBE_TIMEOUT_MS });
    } catch (thrown) {
      // A longer time means that this process was busy and has not read the answer.
      const wasAwake = Date.now() - begun < HANG_PROBE_TIMEOUT_MS + QUIET_MS;
      hangs = wasAwake && TritonError.from(thrown).reason === "CLIENT_TIMEOUT";
    }
    replica.isSuspected = false;
    const answered = replica.waitsSince !== waitsSince;
    if (!hangs) {
      if (!answered) replica.waitsSince = replica.outstanding === 0 ? undefined : Date.now();
      return;
    }
    if (answered || !this.replicas.some((other) => other !== replica && other.serving)) return;
    this.failed(replica);
    for (const hedge of [...replica.hedges]) hedge();
  }

  #nextChange(signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const done = (): void => {
        this.onChange.delete(done);
        forget();
        resolve();
      };
      this.onChange.add(done);
      const forget = onAbort(signal, () => {
        this.onChange.delete(done);
        resolve();
      });
    });
  }

  async #lookUp(): Promise<void> {
    try {
      await this.#addresses.refresh(Number.POSITIVE_INFINITY);
      this.#lookUpFault = undefined;
      if (!this.closed) this.#update(this.#addresses.current);
    } catch (thrown) {
      this.#lookUpFault = TritonError.from(thrown);
      this.#changed();
    }
    if (this.closed) return;
    this.#timer = setTimeout(() => void this.#lookUp(), this.#addresses.intervalMs);
    this.#timer.unref?.();
  }

  #update(urls: readonly string[]): void {
    const known = new Map(this.replicas.map((replica) => [replica.url, replica]));
    const added: Replica[] = [];
    this.replicas = urls.map((url) => {
      const replica = known.get(url) ?? new Replica(url, this.open(url));
      if (!known.delete(url)) added.push(replica);
      return replica;
    });
    for (const replica of known.values()) this.#drop(replica);
    for (const replica of added) void this.#probe(replica);
    if (known.size > 0) this.#changed();
  }

  /** A replica whose address has disappeared finishes its calls. */
  #drop(replica: Replica): void {
    clearTimeout(replica.timer);
    replica.removed = true;
    replica.serving = false;
    if (replica.outstanding === 0) replica.client.close();
  }

  #probeAfter(replica: Replica, pauseMs: number): void {
    clearTimeout(replica.timer);
    replica.timer = setTimeout(() => void this.#probe(replica), pauseMs);
    replica.timer.unref?.();
  }

  async #probe(replica: Replica): Promise<void> {
    let fault: TritonError | undefined;
    try {
      const ready = await replica.client.isReady({ timeoutMs: PROBE_TIMEOUT_MS });
      const text = `model '${this.settings.model}' is not ready at ${replica.url}`;
      if (!ready) fault = errorFor("MODEL_NOT_READY", text);
    } catch (thrown) {
      fault = TritonError.from(thrown);
    }
    if (replica.removed || replica.serving) return;
    if (fault === undefined) {
      replica.serving = true;
      replica.reason = undefined;
    } else {
      replica.reason = fault;
      this.#probeAfter(replica, replica.nextPauseMs());
    }
    this.#changed();
  }

  #changed(): void {
    for (const listener of [...this.onChange]) listener();
  }
}

function closedError(model: string): TritonError {
  return errorFor("CLIENT_CLOSED", `the replicas of model '${model}' are closed`);
}

/** Longest pause between two probes of a server that is away, so that its return is noticed. */
const LONGEST_PAUSE_MS = 5_000;

/** One server with the model: its calls in flight and its health. */
export class Replica {
  outstanding = 0;
  /** True while it gets calls. False at first, until the replica reports that its model is ready. */
  serving = false;
  /** True once its address has disappeared. */
  removed = false;
  /** Reason why it does not serve, once a probe has confirmed it. */
  reason: TritonError | undefined;
  timer: ReturnType<typeof setTimeout> | undefined;
  /** Time of its last answer, or of the first call since; undefined without calls. In milliseconds, as `Date.now()`. */
  waitsSince: number | undefined;
  /** True while a probe looks whether it hangs. */
  isSuspected = false;
  /** Send the calls in flight to another replica too. */
  readonly hedges = new Set<() => void>();
  #pauseMs = 0;

  constructor(
    readonly url: string,
    readonly client: ReplicaClient,
  ) {}

  /** Records an answer to a call, which resets the pause. */
  worked(): void {
    this.#pauseMs = 0;
    // The slot of the call itself is released later.
    this.waitsSince = this.outstanding > 1 ? Date.now() : undefined;
  }

  /** Milliseconds until its next probe, with jitter, so that several clients do not probe a server in step. */
  nextPauseMs(): number {
    this.#pauseMs = nextPause(this.#pauseMs, LONGEST_PAUSE_MS);
    return this.#pauseMs * (0.75 + Math.random() / 4);
  }

  /** True if no pause has grown: the next probe may go out at once. */
  get isFresh(): boolean {
    return this.#pauseMs === 0;
  }
}
