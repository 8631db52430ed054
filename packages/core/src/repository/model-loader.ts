import { isDeepStrictEqual } from "node:util";
import { ConcurrencyGate, errorFor, type ModelConfig, statusText } from "@tritonjs/protocol";
import { completeInstanceGroups, instanceGroupProblems } from "../config/instance-groups.js";
import { throwProblems } from "../config/option-names.js";
import { writePrototxt } from "../config/prototxt.js";
import { ModelVersion } from "../model/model-version.js";
import type { ModelRegistry } from "../model/registry.js";
import { AbsentVersion } from "../model/version-status.js";
import type { ModelId } from "./dependencies.js";
import { isVersionModified } from "./model-directory.js";
import { planVersion } from "./plan-version.js";
import { type PolledModel, selectVersions } from "./poll-model.js";
import type { AgentChain } from "./repository-agents.js";
import type { RepositoryOptions } from "./repository-options.js";
import type { RepositoryServer } from "./repository-poller.js";

interface VersionOutcome {
  readonly version: number;
  /** Set when the version is new. */
  readonly fresh?: ModelVersion;
  /** The failure, in the words for the caller. */
  readonly failure?: string;
  readonly removed?: Promise<void>;
}

export interface LoadedModel {
  /** Resolves when instances removed by an update in place are released. */
  readonly removed: Promise<void>;
}

/** Brings versions of models into service and takes them out of service. Calls for one model must not overlap. */
export class ModelLoader {
  readonly #permits: ConcurrencyGate;
  readonly #held = new WeakMap<ModelVersion, HeldFiles>();

  constructor(
    private readonly options: RepositoryOptions,
    private readonly server: RepositoryServer,
  ) {
    this.#permits = new ConcurrencyGate(
      Math.max(1, options.modelLoadThreadCount ?? 4),
      Number.POSITIVE_INFINITY,
    );
  }

  /**
   * Loads the versions that a model's policy selects. Versions in service stay until all new ones are ready, and stay
   * if one of those fails. A version is kept when its directory and the configuration have not changed. Changed
   * instance groups are applied while it serves.
   *
   * @throws TritonError INVALID_ARG with the state of each version that could not be loaded, and why.
   */
  async load(polled: PolledModel, previous: PolledModel | undefined): Promise<LoadedModel> {
    this.server.registry.announce(polled.id.name, polled.id.namespace);
    const versions = await this.#findVersions(polled);
    const outcomes = await Promise.all(
      versions.map((version) => this.#loadVersion(polled, previous, version)),
    );
    const failures = outcomes.flatMap(({ failure }) => failure ?? []);
    const fresh = outcomes.flatMap((outcome) => outcome.fresh ?? []);
    const { log } = this.server;
    if (failures.length > 0) {
      for (const model of fresh) this.#retire(model);
      log.info(`failed to load '${polled.id.name}'`, { model: polled.id.name });
      throw errorFor("LOAD_REQUEST_FAILED", failures.join(""));
    }
    // New versions come first, so that a request for any version always finds one.
    for (const model of fresh) this.#publish(model);
    for (const model of this.#serving(polled.id)) {
      if (!versions.includes(model.version)) this.#retire(model);
    }
    this.forgetFailures(polled.id);
    log.info(`successfully loaded '${polled.id.name}'`, { model: polled.id.name });
    const removed = Promise.all(outcomes.map((outcome) => outcome.removed)).then(() => {});
    return { removed };
  }

  /** Takes all versions of a model out of service. @returns when the requests in flight are answered */
  unload(id: ModelId): Promise<void> {
    const ended = this.#loaded(id)
      .filter(({ state, isEnsemble, reason }) => state === "READY" || (isEnsemble && reason !== "unloaded"))
      .map((model) => this.#retire(model));
    return Promise.all(ended).then(() => {});
  }

  readyVersions({ name, namespace }: ModelId): number[] {
    const versions = this.server.registry.versions(name, namespace);
    return versions.filter(({ state }) => state === "READY").map(({ version }) => version);
  }

  /** Forgets failed versions that are not requested any more. Otherwise they would keep the server from being ready. */
  forgetFailures({ name, namespace }: ModelId): void {
    const { registry } = this.server;
    for (const one of registry.versions(name, namespace)) {
      const failed = one.state === "UNAVAILABLE" && one.reason !== "unloaded";
      if (failed && !one.isEnsemble) registry.remove(one);
    }
  }

  async #loadVersion(
    polled: PolledModel,
    previous: PolledModel | undefined,
    version: number,
  ): Promise<VersionOutcome> {
    const { registry, log } = this.server;
    const { name, namespace } = polled.id;
    const serving = this.#serving(polled.id).find((model) => model.version === version);
    if (serving !== undefined && this.#canStay(serving, polled, previous)) {
      return this.#permits.run(() => this.#update(serving, polled), undefined);
    }
    log.info(`loading: ${name}:${version}`, { model: name, version });
    const leaving = this.#loaded(polled.id).find((model) => model.version === version && model !== serving);
    if (leaving !== undefined) this.#retire(leaving);
    const show = (state: "LOADING" | "UNAVAILABLE", reason = "") => {
      if (serving === undefined) registry.add(new AbsentVersion(name, namespace, version, state, reason));
    };
    show("LOADING");
    try {
      const fresh = await this.#permits.run(
        () => this.#create(polled, version, serving === undefined),
        undefined,
      );
      return { version, fresh };
    } catch (error) {
      const reason = statusText(error);
      show("UNAVAILABLE", reason);
      return { version, failure: `version ${version} is at UNAVAILABLE state: ${reason};` };
    }
  }

  #canStay(serving: ModelVersion, polled: PolledModel, previous: PolledModel | undefined): boolean {
    const prepared = this.#held.get(serving)?.prepared;
    return (
      !serving.isEnsemble &&
      prepared !== undefined &&
      !isVersionModified(previous?.times, polled.times, serving.version) &&
      !needsReload(prepared, polled.config)
    );
  }

  async #update(serving: ModelVersion, polled: PolledModel): Promise<VersionOutcome> {
    const { version } = serving;
    const { instanceGroup } = polled.config;
    try {
      const isSame = isDeepStrictEqual(this.#held.get(serving)?.prepared.instanceGroup, instanceGroup);
      const update = isSame
        ? undefined
        : await serving.updateInstances(this.#groupsFor(serving.config, instanceGroup));
      serving.reason = "";
      this.#held.get(serving)!.prepared = polled.config;
      return { version, ...update };
    } catch (error) {
      const reason = statusText(error);
      serving.reason = reason;
      this.server.log.error(`failed to load '${serving.name}' version ${version}: ${reason}`);
      return { version, failure: `version ${version} is at READY state: ${reason};` };
    }
  }

  /** Fills in the fields that instance groups leave open. */
  #groupsFor(config: ModelConfig, instanceGroup: ModelConfig["instanceGroup"]): ModelConfig["instanceGroup"] {
    const { gpus } = this.server;
    const completed = completeInstanceGroups({ ...config, instanceGroup }, gpus);
    throwProblems(instanceGroupProblems(completed, gpus));
    return completed.instanceGroup;
  }

  #publish(model: ModelVersion): void {
    const { registry } = this.server;
    const previous = this.#loaded(model).find(({ version }) => version === model.version);
    model.publish();
    registry.add(model);
    if (previous !== undefined && previous !== model) this.#retire(previous);
  }

  #serving(id: ModelId): ModelVersion[] {
    return this.#loaded(id).filter(({ state }) => state === "READY");
  }

  #loaded({ name, namespace }: ModelId): ModelVersion[] {
    return this.server.registry
      .versions(name, namespace)
      .filter((one) => one instanceof ModelVersion)
      .filter(({ directory }) => directory !== undefined);
  }

  /** The versions that the policy of a model selects, ascending. Rejects when there are none. */
  async #findVersions(polled: PolledModel): Promise<readonly number[]> {
    const { versions, missing, ignored, problem } = await selectVersions(polled);
    for (const line of ignored) this.server.log.warning(line);
    for (const line of missing) this.server.log.error(line);
    if (problem !== undefined) throw errorFor("INVALID_CONFIG", problem);
    return versions;
  }

  /**
   * Creates a version and loads it. A version that fails is retried as often as the options say.
   *
   * @param visible whether the registry shows the version while it loads
   * @throws the error of the last attempt
   */
  async #create(polled: PolledModel, version: number, visible: boolean): Promise<ModelVersion> {
    for (let left = this.options.modelLoadRetryCount ?? 0; ; left--) {
      try {
        return await this.#createOnce(polled, version, visible);
      } catch (error) {
        const { name } = polled.id;
        this.server.log.error(`failed to load '${name}' version ${version}: ${statusText(error)}`, {
          model: name,
          version,
        });
        if (left <= 0) throw error;
      }
    }
  }

  async #createOnce(polled: PolledModel, version: number, visible: boolean): Promise<ModelVersion> {
    const { registry, log } = this.server;
    const { plan, close } = await planVersion(polled, version, this.options, this.server, true);
    let model: ModelVersion;
    try {
      log.verbose(1, `\n${writePrototxt(plan.config)}`);
      const labels = new Map([...memberLabels(plan.config, registry), ...plan.labels]);
      model = this.server.create({ ...plan, labels });
    } catch (error) {
      await close();
      throw error;
    }
    if (visible && !model.isEnsemble) registry.add(model);
    const agents = polled.agents?.hold();
    try {
      await model.loaded;
    } catch (error) {
      agents?.leaves();
      agents?.gone();
      throw error;
    }
    polled.override?.retain();
    polled.copy?.retain();
    this.#held.set(model, { prepared: polled.config, polled, agents });
    return model;
  }

  #retire(model: ModelVersion): Promise<void> {
    const held = this.#held.get(model);
    this.#held.delete(model);
    held?.agents?.leaves();
    const ended = model.unload(Number.POSITIVE_INFINITY);
    this.server.registry.retire(model, ended);
    if (held === undefined) return ended;
    const { name, version } = model;
    void ended.then(() => {
      this.server.log.info(`successfully unloaded '${name}' version ${version}`, { model: name, version });
      void held.polled.override?.release();
      void held.polled.copy?.release();
      held.agents?.gone();
    });
    return ended;
  }
}

/** The directory (a copy, or the files of a load request) and the agents that a version holds until it is unloaded. */
interface HeldFiles {
  /** The configuration that the version was made from, before its file completed it. */
  prepared: ModelConfig;
  readonly polled: PolledModel;
  readonly agents: ReturnType<AgentChain["hold"]> | undefined;
}

/** Class names of an ensemble's outputs, from the models that make the outputs. */
function memberLabels(config: ModelConfig, registry: ModelRegistry): Map<string, readonly string[]> {
  const labels = new Map<string, readonly string[]>();
  for (const step of config.ensembleScheduling?.step ?? []) {
    const version = step.modelVersion === -1 ? "" : String(step.modelVersion);
    const member = registry.findMember(step.modelName, version, step.modelNamespace);
    for (const [output, tensor] of Object.entries(step.outputMap)) {
      const names = member.labels.get(output);
      if (names !== undefined) labels.set(tensor, names);
    }
  }
  return labels;
}

/** Instance groups change while a model serves, and the version policy only selects the versions that serve. */
export function needsReload(before: ModelConfig, after: ModelConfig): boolean {
  return !isDeepStrictEqual(withoutPlacement(before), withoutPlacement(after));
}

function withoutPlacement({ instanceGroup: _, versionPolicy: __, ...rest }: ModelConfig) {
  return rest;
}
