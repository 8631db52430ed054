import { readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import type { Clock, CollectedFamily, Log, Residence, TenantModel } from "@tritonjs/core/extension";
import { planInstances } from "@tritonjs/core/extension";
import { Alarm, everyMs, quietTimers, sleep } from "@tritonjs/core/internal";
import { ConcurrencyGate, errorFor, type ModelConfig, statusText, TritonError } from "@tritonjs/protocol";
import { MB, type OnDemandSettings, type TenantSettings } from "./on-demand-settings.js";

/** Memory of an instance besides its model's files: a thread with its runtime, or a process. */
const THREAD_BYTES = 14 * MB;
const PROCESS_BYTES = 50 * MB;

/** Time in which the rate of requests follows a change, in milliseconds. */
const RATE_MEMORY_MS = 60_000;

/** Milliseconds that a load waits for an idle model to replace, before a busy one has to leave. */
const PATIENCE_MS = 1000;

/** Milliseconds between two looks for an idle model, while all are busy and a load waits. */
const LOOK_EVERY_MS = 5;

/** Milliseconds after a failed load before a request tries it again. The time doubles with each failure. */
const RETRY_MS = 1000;
const LONGEST_RETRY_MS = 60_000;

/** Models that load at the same time because of requests. */
const LOADS_AT_A_TIME = 4;

/** Why a model has left memory. */
type LeaveReason = "ttl" | "memory";

/**
 * The models that may leave memory, and the room that they have together.
 *
 * ```
 * on disk --request--> loading --> resident --no request for the ttl, or another needs its room--> leaving --> on disk
 *                         +--load fails--> on disk; requests that wait fail, and the next attempt is later
 * ```
 *
 * A model on disk stays READY and keeps its queue, so a request that comes while the model leaves waits there and loads it
 * again. A model that works is asked to leave only if a load has found no idle one for a second; its queue then waits too.
 */
export class ResidentModels {
  readonly #tenants = new Set<Tenant>();
  readonly #sweep: Alarm;
  readonly #gate = new ConcurrencyGate(LOADS_AT_A_TIME, Number.POSITIVE_INFINITY);
  /** Loads get their room one after the other. */
  #turn: Promise<unknown> = Promise.resolve();
  #left: (() => void) | undefined;
  readonly #mayWarn: () => boolean;
  readonly budgetBytes: number;

  constructor(
    private readonly settings: OnDemandSettings,
    readonly clock: Clock,
    readonly log: Log,
  ) {
    this.budgetBytes = settings.budgetBytes;
    this.#sweep = new Alarm(quietTimers(clock) as Clock, () => this.#leaveIdle());
    this.#mayWarn = everyMs(clock, 60_000);
  }

  /** Bytes of the models in memory, of those that load, and of those that leave. */
  get usedBytes(): number {
    let sum = 0;
    for (const one of this.#tenants) if (one.holds) sum += one.bytes;
    return sum;
  }

  /**
   * Gives a model its place; undefined for a model that is always in memory.
   *
   * @throws TritonError INVALID_ARG for parameters of its configuration that are not valid
   */
  admit(model: TenantModel): Residence | undefined {
    const settings = this.settings.of(model);
    if (settings === undefined) return undefined;
    const tenant = new Tenant(model, settings, this);
    this.#tenants.add(tenant);
    return tenant;
  }

  /** True for a model of a repository that is not in memory when it comes into service, unless it is loaded by name. */
  startsOnDisk(config: ModelConfig): boolean {
    return this.settings.onDemand(config) ?? this.usedBytes >= this.budgetBytes;
  }

  /** The families of the metrics page. */
  families(): CollectedFamily[] {
    const family = (
      name: string,
      type: "gauge" | "counter",
      help: string,
      series: (one: Tenant) => readonly (readonly [Record<string, string>, number])[],
    ): CollectedFamily => ({
      name: `tritonjs_model_${name}`,
      help,
      type,
      collect: () =>
        [...this.#tenants].flatMap((one) => {
          const { name: model, namespace, version } = one.model;
          const space: Record<string, string> = namespace === "" ? {} : { namespace };
          return series(one).map(([own, value]) => ({
            labels: { ...space, model, version: String(version), ...own },
            value,
          }));
        }),
    });
    return [
      family("resident", "gauge", "1 for a model in memory, 0 for one on disk only", (one) => [
        [{}, one.phase === "resident" ? 1 : 0],
      ]),
      family("memory_bytes", "gauge", "Estimated memory of the model, 0 on disk", (one) => [
        [{}, one.holds ? one.bytes : 0],
      ]),
      family("loads_total", "counter", "Times that the model came into memory", (one) => [[{}, one.loads]]),
      family("evictions_total", "counter", "Times that the model left memory, by reason", (one) =>
        (["ttl", "memory"] as const).map((reason) => [{ reason }, one.evictions[reason]] as const),
      ),
      {
        name: "tritonjs_memory_budget_bytes",
        help: "Memory that models may take together; +Inf without a limit",
        type: "gauge",
        collect: () => [{ labels: {}, value: this.budgetBytes }],
      },
    ];
  }

  /** Loads a tenant for which requests wait. @param urgent true if running work waits for it, which may hold the room */
  async load(tenant: Tenant, urgent: boolean): Promise<void> {
    if (urgent) {
      if (await this.#makeRoom(tenant, true)) await tenant.arrive();
      return;
    }
    const turn = this.#turn.then(() => this.#makeRoom(tenant, false));
    this.#turn = turn.catch(() => {});
    if (await turn) await this.#gate.run(() => tenant.arrive(), undefined);
  }

  /** True, and the room is taken, if there is room for a tenant without replacing another. */
  async takeFreeRoom(tenant: Tenant): Promise<boolean> {
    await tenant.measure();
    if (this.usedBytes + tenant.bytes > this.budgetBytes) return false;
    tenant.phase = "loading";
    return true;
  }

  hasLeft(): void {
    this.#left?.();
  }

  /** Looks again when the first model may have been idle for its time. */
  watch(): void {
    let next = Number.POSITIVE_INFINITY;
    for (const one of this.#tenants) {
      if (one.phase === "resident") next = Math.min(next, one.settings.ttlMs - one.idleMs);
    }
    if (next < Number.POSITIVE_INFINITY) this.#sweep.set(Math.max(1, next));
    else this.#sweep.callOff();
  }

  remove(tenant: Tenant): void {
    this.#tenants.delete(tenant);
    this.#left?.();
  }

  close(): void {
    this.#sweep.callOff();
  }

  #leaveIdle(): void {
    for (const one of this.#tenants) {
      if (one.phase !== "resident" || one.isPinned || !one.isIdle) continue;
      if (one.idleMs >= one.settings.ttlMs) void one.leave("ttl");
    }
    // A busy model is looked at again after a while.
    let next = Number.POSITIVE_INFINITY;
    for (const one of this.#tenants) {
      const { ttlMs } = one.settings;
      if (one.phase === "resident") next = Math.min(next, Math.max(ttlMs / 4, ttlMs - one.idleMs));
    }
    if (next < Number.POSITIVE_INFINITY) this.#sweep.set(Math.max(1, next));
  }

  /**
   * Takes room for a tenant, once models of less value have left.
   *
   * @param urgent whether it takes the room at once, and others leave later
   * @returns false for a tenant that another call loads
   */
  async #makeRoom(tenant: Tenant, urgent: boolean): Promise<boolean> {
    await tenant.measure();
    if (tenant.bytes > this.budgetBytes) throw noRoom(tenant, this.budgetBytes);
    const since = this.clock.now();
    for (;;) {
      if (tenant.phase !== "disk" || tenant.isPinned) return false;
      let [used, leaving] = [0, 0];
      for (const one of this.#tenants) {
        if (one.holds) used += one.bytes;
        if (one.phase === "leaving") leaving += one.bytes;
      }
      if (used + tenant.bytes <= this.budgetBytes || urgent) {
        tenant.phase = "loading";
        this.#warnOf(used + tenant.bytes);
        this.#freeFor(used - leaving + tenant.bytes);
        return true;
      }
      const mayLeave = [...this.#tenants].some((one) => one.holds && !one.settings.keeps);
      if (!mayLeave) throw noRoom(tenant, this.budgetBytes);
      const missing = this.#freeFor(used - leaving + tenant.bytes);
      if (missing > 0 && this.clock.now() - since > PATIENCE_MS)
        this.#least((one) => !one.hasSequences)?.leave("memory");
      const left = new Promise<void>((resolve) => {
        this.#left = resolve;
      });
      await (missing > 0 ? Promise.race([left, sleep(this.clock, LOOK_EVERY_MS)]) : left);
    }
  }

  /** Asks idle models to leave until so many bytes fit. @returns bytes that are still missing */
  #freeFor(bytes: number): number {
    let missing = bytes - this.budgetBytes;
    while (missing > 0) {
      const one = this.#least((other) => other.isIdle);
      if (one === undefined) break;
      missing -= one.bytes;
      void one.leave("memory");
    }
    return missing;
  }

  /** The resident model of the least value. */
  #least(may: (one: Tenant) => boolean): Tenant | undefined {
    let least: Tenant | undefined;
    let leastValue = Number.POSITIVE_INFINITY;
    for (const one of this.#tenants) {
      if (one.phase !== "resident" || one.settings.keeps || one.isPinned || !may(one)) continue;
      const value = one.value();
      if (value < leastValue) [least, leastValue] = [one, value];
    }
    return least;
  }

  #warnOf(bytes: number): void {
    if (bytes <= this.budgetBytes || !this.#mayWarn()) return;
    this.log.warning(
      `models take ${Math.round(bytes / MB)} MB, more than modelMemoryBudgetMb=${this.budgetBytes / MB}: running requests ` +
        "need a model that was not in memory",
    );
  }
}

/** The error of a model for which the budget has no room, also if all models that may leave have left. */
function noRoom({ model, bytes }: Tenant, budget: number): TritonError {
  return errorFor(
    "MODEL_NOT_READY",
    `model '${model.name}' version ${model.version} cannot be loaded: expected room for about ${Math.ceil(bytes / MB)} MB, ` +
      `got modelMemoryBudgetMb=${budget / MB}, of which models with keep_loaded have their part`,
  );
}

/** Reason of a READY version in the repository index. */
const ON_DISK = "on disk only: it loads at the first request";

/** One model version that may leave memory. */
class Tenant implements Residence {
  phase: "disk" | "loading" | "resident" | "leaving" = "disk";
  bytes = THREAD_BYTES;
  loads = 0;
  readonly evictions: Record<LeaveReason, number> = { ttl: 0, memory: 0 };
  #measured = false;
  #loadMs = 1;
  /** When it was loaded, as wall time. */
  #since = 0;
  /** Requests for each millisecond, and the state from which it was computed. */
  #rate = 0;
  #counted = 0;
  #countedAt = 0;
  #failures = 0;
  #failure: TritonError | undefined;
  #retryAt = 0;
  /** True while a load for requests is under way. */
  #isWanted = false;
  #ended = false;
  isPinned = false;

  constructor(
    readonly model: TenantModel,
    readonly settings: TenantSettings,
    private readonly residents: ResidentModels,
  ) {}

  get isResident(): boolean {
    return this.phase === "resident";
  }

  /** True while the model takes memory. */
  get holds(): boolean {
    return this.phase !== "disk";
  }

  get failure(): TritonError | undefined {
    return this.#failure !== undefined && this.residents.clock.now() < this.#retryAt
      ? this.#failure
      : undefined;
  }

  get problem(): string | undefined {
    return this.#failure?.message;
  }

  /** True if no request is in flight and no sequence is open. */
  get isIdle(): boolean {
    return this.model.inflightCount === 0 && !this.hasSequences;
  }

  get hasSequences(): boolean {
    const { sequences } = this.model;
    return sequences !== undefined && sequences.inSlots + sequences.inBacklog > 0;
  }

  get idleMs(): number {
    if (!this.isIdle) return 0;
    return this.residents.clock.wallNow() - Math.max(this.#since, this.model.statistics.lastInference);
  }

  /** Milliseconds of loading that keeping the model saves, for each millisecond and byte. */
  value(): number {
    const now = this.residents.clock.now();
    const { success, fail } = this.model.statistics;
    const count = success.count + fail.count;
    const kept = Math.exp((this.#countedAt - now) / RATE_MEMORY_MS);
    this.#rate = this.#rate * kept + (count - this.#counted) / RATE_MEMORY_MS;
    this.#counted = count;
    this.#countedAt = now;
    return (this.#rate * this.#loadMs) / this.bytes;
  }

  async start(now: boolean): Promise<void> {
    if (this.phase !== "disk") return;
    if ((now || !this.settings.onDemand) && (await this.residents.takeFreeRoom(this))) await this.arrive();
    else if (now) await this.residents.load(this, false);
    else this.model.reason = ON_DISK;
  }

  want(urgent: boolean): void {
    if (urgent) {
      // The load that others wait for may be behind one that waits for the work that waits for this one.
      if (this.phase === "disk") void this.#load(true);
    } else if (!this.#isWanted) {
      this.#isWanted = true;
      void this.#load(false).finally(() => {
        this.#isWanted = false;
      });
    }
  }

  /** Estimates the memory that the model takes: its files, and the threads or processes of its instances. */
  async measure(): Promise<void> {
    if (this.#measured) return;
    const { bytes } = this.settings;
    const { directory, config } = this.model;
    this.bytes = bytes ?? (await filesBytes(directory)) + instancesBytes(config, THREAD_BYTES);
    this.#measured = true;
  }

  /** Loads the instances. The room is taken. */
  async arrive(): Promise<void> {
    const { model, residents } = this;
    const { clock } = residents;
    const start = clock.now();
    this.phase = "loading";
    try {
      await model.arrive();
    } catch (error) {
      this.phase = "disk";
      residents.hasLeft();
      throw error;
    }
    this.phase = "resident";
    this.loads++;
    this.#loadMs = Math.max(0.1, clock.now() - start);
    model.statistics.loadDurationMs = this.#loadMs;
    this.#since = clock.wallNow();
    if (this.settings.bytes === undefined && model.isolation === "process") {
      this.bytes += instancesBytes(model.config, PROCESS_BYTES - THREAD_BYTES);
    }
    this.#failure = undefined;
    this.#failures = 0;
    model.reason = "";
    residents.watch();
  }

  /** Releases the instances, after the batches that run. */
  async leave(reason: LeaveReason): Promise<void> {
    const { model, residents } = this;
    this.phase = "leaving";
    this.evictions[reason]++;
    const why = reason === "ttl" ? "it had no request for its time" : "others need its memory";
    residents.log.verbose(1, `model '${model.name}' version ${model.version} leaves memory: ${why}`, {
      model: model.name,
      version: model.version,
    });
    await model.leave();
    this.phase = "disk";
    if (!this.#ended) model.reason = ON_DISK;
    residents.hasLeft();
    if (!this.#ended && model.inflightCount > 0) this.want(false);
  }

  async pin(): Promise<void> {
    this.isPinned = true;
    while (this.phase === "loading" || this.phase === "leaving") {
      await sleep(this.residents.clock, LOOK_EVERY_MS);
    }
  }

  unpin(): void {
    this.isPinned = false;
    this.residents.hasLeft();
    if (this.phase === "disk" && this.model.inflightCount > 0) this.want(false);
  }

  end(): void {
    this.#ended = true;
    this.residents.remove(this);
  }

  async #load(urgent: boolean): Promise<void> {
    const { model, residents } = this;
    try {
      // A request that came while the model leaves waits until it has left.
      if (this.phase === "disk") await residents.load(this, urgent);
    } catch (error) {
      if (this.#ended) return;
      this.#failed(error);
      model.failQueued(this.#failure!);
    }
  }

  #failed(error: unknown): void {
    const { model, residents } = this;
    const { clock } = residents;
    const why = TritonError.from(error).message;
    const text = `model '${model.name}' version ${model.version} could not be loaded for a request: ${why}`;
    this.#failure = errorFor("MODEL_NOT_READY", text, { cause: error });
    this.#retryAt = clock.now() + Math.min(LONGEST_RETRY_MS, RETRY_MS * 2 ** this.#failures++);
    model.reason = text;
    residents.log.error(`failed to load '${model.name}' version ${model.version}: ${statusText(error)}`, {
      model: model.name,
      version: model.version,
    });
  }
}

function instancesBytes(config: ModelConfig, each: number): number {
  return planInstances(config).length * each;
}

/** Bytes of all files of a version. A directory that cannot be read has none: its load reports that. */
async function filesBytes(directory: string | undefined): Promise<number> {
  if (directory === undefined) return 0;
  try {
    const entries = await readdir(directory, { recursive: true, withFileTypes: true });
    const sizes = entries
      .filter((entry) => entry.isFile() || entry.isSymbolicLink())
      .map(async (entry) => (await stat(join(entry.parentPath, entry.name))).size);
    return (await Promise.all(sizes)).reduce((sum, size) => sum + size, 0);
  } catch {
    return 0;
  }
}
