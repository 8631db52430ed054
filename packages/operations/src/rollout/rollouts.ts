import { channel } from "node:diagnostics_channel";
import type {
  Clock,
  Extension,
  ExtensionParts,
  ExtensionServer,
  Log,
  ModelPlan,
  ModelRegistry,
  ModelVersion,
} from "@tritonjs/core/extension";
import { Alarm, quietTimers } from "@tritonjs/core/internal";
import { errorFor, TritonError } from "@tritonjs/protocol";
import { LiveRollout, type RolloutEvent, type RolloutReport, type RolloutServer } from "./rollout.js";
import { RolloutFiles } from "./rollout-files.js";
import { handleOf, type Rollout } from "./rollout-handle.js";
import { rolloutFamilies } from "./rollout-metrics.js";
import {
  ROLLOUT_PARAMETERS,
  type RolloutOptions,
  resolveRollout,
  rolloutOfConfig,
} from "./rollout-options.js";
import { ROLLOUT_VIEW, rolloutRoute } from "./rollout-route.js";
import { assertSameTensors, assertShadows } from "./version-checks.js";

/** Actions of operators on a rollout. */
export type RolloutAction = "pause" | "resume" | "promote" | "rollback" | "remove";

const ACTIONS: readonly RolloutAction[] = ["pause", "resume", "promote", "rollback", "remove"];

/** Options of `rollouts`. */
export interface RolloutsOptions {
  /**
   * Directory in which the states of rollouts are kept. Rollouts that were not removed continue when the server starts
   * again. @default none
   */
  readonly directory?: string;
}

/** The channel of `node:diagnostics_channel` that gets each {@link RolloutEvent} of the process. */
const rolloutEvents = channel("tritonjs:rollout");

/** Milliseconds between two times that the state of a rollout is saved without an event. */
const SAVE_EVERY_MS = 10_000;

interface StartedRollout {
  readonly live: LiveRollout;
  readonly options: RolloutOptions;
  readonly files: RolloutFiles | undefined;
  readonly listeners: Set<(event: RolloutEvent) => void>;
  /** True for a saved rollout that the program has not started itself yet. It may start it with its own options. */
  readonly resumed: boolean;
}

/** The rollouts of a server, at most one for each model. An extension that `rollouts` makes. */
export class Rollouts implements Extension, RolloutServer {
  readonly name = "rollouts";
  readonly parameters = ROLLOUT_PARAMETERS;
  readonly #directory: string | undefined;
  readonly #rollouts = new Map<string, StartedRollout>();
  /** Models whose rollout is about to start. */
  readonly #starting = new Set<string>();
  /** Rollouts that start when their versions are in service: those of configurations, and saved ones. */
  readonly #pending = new Map<string, RolloutOptions>();
  /** Models whose rollout is pending because it was saved. */
  readonly #saved = new Set<string>();
  readonly #files = new Map<string, RolloutFiles>();
  #attached: { readonly server: ExtensionServer; readonly log: Log; readonly saveAlarm: Alarm } | undefined;
  #closed = false;
  /** The options in the configurations of models, as text, which were applied last. */
  readonly #configured = new Map<string, string>();

  constructor({ directory }: RolloutsOptions) {
    this.#directory = directory;
  }

  attach(server: ExtensionServer): ExtensionParts {
    const saveAlarm = new Alarm(quietTimers(server.clock) as Clock, () => this.#saveAll());
    this.#attached = { server, log: server.log("rollout"), saveAlarm };
    const stopFollowing = server.registry.onChange(() => this.#follow());
    const families = rolloutFamilies(() => this.reports());
    return {
      start: () => this.#resume(),
      drain: async () => {
        stopFollowing();
        await this.#close();
      },
      families: () => families,
      routes: [
        rolloutRoute(
          (model) => this.get(model).report(),
          (model, request) => this.change(model, request),
        ),
      ],
      page: { data: () => this.reports(), view: ROLLOUT_VIEW },
      adapt: (plan) => {
        this.#configure(plan);
        return plan;
      },
    };
  }

  get clock(): Clock {
    return this.#server.clock;
  }

  get log(): Log {
    return this.#part.log;
  }

  get #server(): ExtensionServer {
    return this.#part.server;
  }

  get #registry(): ModelRegistry {
    return this.#server.registry;
  }

  get #part() {
    if (this.#attached !== undefined) return this.#attached;
    throw errorFor("INVALID_ROLLOUT", "rollouts have no server: give them to new Triton({ extensions })");
  }

  /**
   * Starts a rollout, once both versions have loaded. A saved rollout between the same versions continues.
   *
   * @throws TritonError INVALID_ARG for options that are not valid, for a version that is not in service, and for two
   * versions with different tensors; ALREADY_EXISTS for a model that has a rollout
   */
  async start(model: string, options: RolloutOptions): Promise<Rollout> {
    this.#assertFree(model);
    this.#starting.add(model);
    try {
      await this.#registry.loading(model);
      if (this.#closed)
        throw errorFor("SERVER_STOPPING", `cannot roll out model '${model}': the server is closing`);
      return this.#start(model, options);
    } finally {
      this.#starting.delete(model);
    }
  }

  /** @throws TritonError NOT_FOUND for a model without a rollout */
  get(model: string): Rollout {
    return this.#handleOf(this.#started(model));
  }

  /** All rollouts, also those that are over and not removed. */
  reports(): RolloutReport[] {
    return [...this.#rollouts.values()].map(({ live }) => live.report());
  }

  /**
   * Does what an operator asks for: an action by its name, another share, or a new rollout.
   *
   * @throws TritonError INVALID_ARG for an unknown action or impossible options, NOT_FOUND for a model without a rollout,
   * ALREADY_EXISTS for a second rollout of a model
   */
  async change(model: string, request: Readonly<Record<string, unknown>>): Promise<RolloutReport> {
    const { action, ...options } = request;
    if (options.directory !== undefined) {
      throw errorFor(
        "INVALID_ROLLOUT",
        `rollout of model '${model}', option 'directory': only the program and the command line may set it`,
      );
    }
    const names = Object.keys(options);
    if (action !== undefined) {
      if (names.length === 0) return this.#act(model, String(action));
      throw errorFor(
        "INVALID_ROLLOUT",
        `rollout of model '${model}': expected an action alone, got also '${names[0]}'`,
      );
    }
    if (names.length === 1 && names[0] === "share") {
      this.#started(model).live.setShare(Number(options.share));
      return this.get(model).report();
    }
    return (await this.start(model, options as unknown as RolloutOptions)).report();
  }

  /**
   * Starts the rollouts that are saved in the directory. A rollout whose versions are not in service starts when they are.
   */
  #resume(): void {
    const directory = this.#directory;
    if (directory === undefined) return;
    for (const { model, options } of this.#filesIn(directory).readAll()) {
      this.#pending.set(model, options);
      this.#saved.add(model);
    }
    this.#follow();
  }

  /** Saves all states, and ends the timers. */
  async #close(): Promise<void> {
    this.#closed = true;
    this.#part.saveAlarm.callOff();
    this.#saveAll();
    for (const { live } of this.#rollouts.values()) live.close();
    await Promise.all([...this.#files.values()].map((files) => files.settled()));
  }

  version(model: string, namespace: string, version: number): ModelVersion | undefined {
    return this.#registry.readyVersion(model, namespace, version);
  }

  routed(model: string): void {
    const rollout = this.#rollouts.get(model);
    if (rollout !== undefined) this.#server.route(model, rollout.live.namespace, rollout.live);
  }

  changed(live: LiveRollout, event: RolloutEvent): void {
    const { model, from, to } = live;
    const why = event.reason === "" ? "" : `: ${event.reason}`;
    const text = `rollout of model '${model}' from version ${from} to ${to} ${wordsOf(event)}${why}`;
    const about = { model, version: String(to) };
    if (event.type === "rolled_back" || event.type === "fault") this.log.warning(text, about);
    else this.log.info(text, about);
    const rollout = this.#rollouts.get(model);
    if (rollout?.live !== live) return;
    this.#save(rollout);
    if (rolloutEvents.hasSubscribers) rolloutEvents.publish(event);
    for (const listener of rollout.listeners) {
      try {
        listener(event);
      } catch (error) {
        process.emitWarning(error instanceof Error ? error : String(error));
      }
    }
  }

  /** Looks at the versions of all rollouts after models have changed. */
  #follow(): void {
    for (const { live } of this.#rollouts.values()) {
      const { model, namespace, to } = live;
      if (live.isOver || this.version(model, namespace, to) !== undefined) continue;
      const now = this.#registry.versions(model, namespace).find((one) => one.version === to);
      // A reload replaces a version by itself.
      if (now?.state === "LOADING") continue;
      live.lost(now === undefined ? "it was removed" : now.reason || now.state.toLowerCase());
    }
    for (const [model, options] of [...this.#pending]) {
      if (this.#rollouts.has(model) || this.#starting.has(model)) {
        this.#pending.delete(model);
        continue;
      }
      const namespace = options.namespace ?? this.#onlyNamespace(model);
      if (namespace === undefined || this.version(model, namespace, options.to) === undefined) continue;
      if (options.from !== undefined && this.version(model, namespace, options.from) === undefined) continue;
      this.#pending.delete(model);
      this.#tryStart(model, options, this.#saved.has(model));
    }
  }

  /** Applies the options in the configuration of a model, when its versions are in service. */
  #configure({ name: model, namespace = "", config }: ModelPlan): void {
    const read = rolloutOfConfig(config.parameters);
    if (read === undefined) return;
    const options = namespace === "" ? read : { ...read, namespace };
    const text = JSON.stringify(options);
    if (this.#configured.get(model) === text) return;
    this.#configured.set(model, text);
    const known = this.#rollouts.get(model)?.live;
    if (known !== undefined && !known.isOver && (known.from !== options.from || known.to !== options.to)) {
      this.log.warning(
        `the configuration of model '${model}' has another rollout than the one from version ${known.from} to ` +
          `${known.to}, which continues`,
        { model },
      );
      return;
    }
    if (known !== undefined) this.#forget(model);
    this.#pending.set(model, options);
    this.#follow();
  }

  #tryStart(model: string, options: RolloutOptions, resumed: boolean): void {
    try {
      this.#start(model, options, resumed);
    } catch (error) {
      const why = TritonError.from(error).message;
      this.log.error(`cannot start the rollout of model '${model}': ${why}`, { model });
    }
  }

  #start(model: string, given: RolloutOptions, resumed = false): Rollout {
    this.#assertFree(model, false);
    const namespace = this.#namespaceOf(model, given.namespace);
    const options = resolveRollout(model, given, this.#current(model, namespace));
    const old = this.#inService(model, namespace, options.from);
    const fresh = this.#inService(model, namespace, options.to);
    assertSameTensors(old, fresh);
    if (options.shadow !== undefined) assertShadows(fresh);
    const directory = given.directory ?? this.#directory;
    const files = directory === undefined ? undefined : this.#filesIn(directory);
    const known = this.#rollouts.get(model);
    // A second rollout of the program is a new attempt.
    const file = known === undefined ? files?.read(model) : undefined;
    const isOfNamespace = (file?.options.namespace ?? namespace) === namespace;
    const saved = known?.resumed ? known.live.save() : isOfNamespace ? file?.saved : undefined;
    const isSame = saved?.from === options.from && saved?.to === options.to;
    known?.live.close();
    const live = new LiveRollout(model, namespace, options, this, isSame ? saved : undefined);
    const listeners = new Set<(event: RolloutEvent) => void>();
    const rollout = { live, options: given, files, listeners, resumed };
    this.#rollouts.set(model, rollout);
    this.#server.route(model, namespace, live);
    this.changed(live, { type: "started", reason: "", rollout: live.report() });
    if (files !== undefined) this.#saveLater();
    return this.#handleOf(rollout);
  }

  #handleOf(rollout: StartedRollout): Rollout {
    const { live, listeners } = rollout;
    return handleOf(live, listeners, () => {
      if (this.#rollouts.get(live.model) === rollout) this.#forget(live.model);
    });
  }

  #act(model: string, action: string): RolloutReport {
    const rollout = this.#started(model);
    const handle = this.#handleOf(rollout);
    const { live } = rollout;
    switch (action as RolloutAction) {
      case "pause":
        live.pause();
        break;
      case "resume":
        live.resume();
        break;
      case "promote":
        live.promote();
        break;
      case "rollback":
        live.rollBack("an operator asked for it");
        break;
      case "remove":
        handle.remove();
        break;
      default: {
        const known = ACTIONS.map((one) => `"${one}"`).join(", ");
        throw errorFor(
          "INVALID_ROLLOUT",
          `action of the rollout of model '${model}': expected one of ${known}, got "${action}"`,
        );
      }
    }
    return live.report();
  }

  #forget(model: string): void {
    const rollout = this.#rollouts.get(model);
    if (rollout === undefined) return;
    rollout.live.close();
    this.#rollouts.delete(model);
    rollout.files?.remove(model);
    this.#server.route(model, rollout.live.namespace, undefined);
  }

  #started(model: string): StartedRollout {
    const rollout = this.#rollouts.get(model);
    if (rollout !== undefined) return rollout;
    throw errorFor("UNKNOWN_ROLLOUT", `model '${model}' has no rollout`);
  }

  #assertFree(model: string, orStarting = true): void {
    const { live: known, resumed } = this.#rollouts.get(model) ?? {};
    if (known !== undefined && !known.isOver && !resumed) {
      throw errorFor(
        "ROLLOUT_EXISTS",
        `model '${model}' has a rollout from version ${known.from} to ${known.to}: promote it or roll it back first`,
      );
    }
    if (orStarting && this.#starting.has(model)) {
      throw errorFor("ROLLOUT_EXISTS", `model '${model}' has a rollout that is about to start`);
    }
  }

  /** The version that requests without a version get now; undefined for none. */
  #current(model: string, namespace: string): number | undefined {
    const routed = this.#registry.routerOf(model, namespace)?.version;
    if (routed !== undefined && this.version(model, namespace, routed) !== undefined) return routed;
    return this.#served(model, namespace).at(-1);
  }

  #served(model: string, namespace: string): number[] {
    return this.#registry
      .versions(model, namespace)
      .filter(({ state }) => state === "READY")
      .map(({ version }) => version);
  }

  /** The only namespace that has a model; undefined if several have it. */
  #onlyNamespace(model: string): string | undefined {
    const spaces = this.#registry.namespacesOf(model);
    return spaces.length > 1 ? undefined : (spaces[0] ?? "");
  }

  /** @throws TritonError INVALID_ARG for a repository without the model, and for none where several have it */
  #namespaceOf(model: string, given: string | undefined): string {
    const spaces = this.#registry.namespacesOf(model);
    if (given === undefined ? spaces.length <= 1 : spaces.includes(given)) return given ?? spaces[0] ?? "";
    const list = spaces.map((space) => `'${space}'`).join(", ");
    throw errorFor(
      "INVALID_ROLLOUT",
      `rollout of model '${model}', option 'namespace': expected a repository that has the model (${list}), ` +
        `got ${given === undefined ? "none" : `'${given}'`}`,
    );
  }

  #inService(model: string, namespace: string, version: number): ModelVersion {
    const found = this.version(model, namespace, version);
    if (found !== undefined) return found;
    const all = this.#registry.versions(model, namespace);
    const reason = all.find((one) => one.version === version)?.reason;
    const why = reason === undefined || reason === "" ? "" : ` (${reason})`;
    const served = this.#served(model, namespace);
    throw errorFor(
      "INVALID_ROLLOUT",
      `rollout of model '${model}': version ${version} is not in service${why}: expected one of ` +
        `[${served.join(", ")}]`,
    );
  }

  #filesIn(directory: string): RolloutFiles {
    const known = this.#files.get(directory);
    if (known !== undefined) return known;
    const files = new RolloutFiles(directory, this.log);
    this.#files.set(directory, files);
    return files;
  }

  #save({ live, options, files }: StartedRollout): void {
    const { model, namespace, from } = live;
    const space = namespace === "" ? {} : { namespace };
    files?.write({ model, options: { ...options, from, ...space }, saved: live.save() });
  }

  #saveLater(): void {
    const { saveAlarm } = this.#part;
    if (!this.#closed && !saveAlarm.isSet) saveAlarm.set(SAVE_EVERY_MS);
  }

  #saveAll(): void {
    let live = false;
    for (const rollout of this.#rollouts.values()) {
      if (rollout.files === undefined || rollout.live.isOver) continue;
      live = true;
      this.#save(rollout);
    }
    if (live) this.#saveLater();
  }
}

function wordsOf({ type, rollout }: RolloutEvent): string {
  switch (type) {
    case "started":
      return `is ${rollout.state.replace("_", " ")} with ${rollout.share}% of the requests`;
    case "step":
    case "share":
      return `now sends ${rollout.share}% of the requests to the new version`;
    case "rolled_back":
      return "was rolled back";
    case "fault":
      return "has found a fault";
    default:
      return `was ${type}`;
  }
}
