import { isDeepStrictEqual } from "node:util";
import { type ModelConfig, statusText, TritonError } from "@tritonjs/protocol";
import { completeInstanceGroups, instanceGroupProblems } from "../config/instance-groups.js";
import { ModelVersion } from "../model/model-version.js";
import type { ModelRegistry } from "../model/registry.js";
import { AbsentVersion } from "../model/version-status.js";
import type { Log } from "../observe/log.js";
import { type CreateContext, createVersion } from "./create-version.js";
import type { ModelId } from "./dependencies.js";
import { Semaphore } from "./locks.js";
import {
  isVersionModified,
  readVersionDirectories,
  subdirectories,
  versionsToLoad,
} from "./model-directory.js";
import type { AgentChain } from "./repository-agents.js";
import type { PolledModel } from "./repository-poller.js";

/** The context of loading. */
export interface LoaderContext extends CreatorContext {
  /** Versions that load at the same time. */
  readonly loadThreadCount: number;
}

/** The result of one version of a load. */
interface VersionOutcome {
  readonly version: number;
  /** Set when the version is new. */
  readonly fresh?: ModelVersion;
  /** The failure, in the words for the caller. */
  readonly failure?: string;
  /** Resolves when instances removed by an update in place are released. */
  readonly removed?: Promise<void>;
}

/** A model whose versions are in service. */
export interface LoadedModel {
  /** Resolves when instances removed by an update in place are released. */
  readonly removed: Promise<void>;
}

/** Brings versions of models into service and takes them out of service. Calls for one model must not overlap. */
export class ModelLoader {
  readonly #context: LoaderContext;
  readonly #permits: Semaphore;
  readonly #creator: VersionCreator;
  /** The configuration that each version was made from, before its file completed it. */
  readonly #prepared = new WeakMap<ModelVersion, ModelConfig>();

  constructor(context: LoaderContext) {
    this.#context = context;
    this.#permits = new Semaphore(context.loadThreadCount);
    this.#creator = new VersionCreator(context);
  }

  /**
   * Loads the versions that a model's policy selects. Versions in service stay until all new ones are ready, and stay
   * if one of those fails. A version is kept when its directory and the configuration have not changed. Changed
   * instance groups are applied while it serves.
   *
   * @throws TritonError INVALID_ARG with the state of each version that could not be loaded, and why.
   */
  async load(polled: PolledModel, previous: PolledModel | undefined): Promise<LoadedModel> {
    this.#context.registry.announce(polled.id.name, polled.id.namespace);
    const versions = await findVersions(polled, this.#context.log);
    const outcomes = await Promise.all(
      versions.map((version) => this.#loadVersion(polled, previous, version)),
    );
    const failures = outcomes.flatMap(({ failure }) => failure ?? []);
    const fresh = outcomes.flatMap((outcome) => outcome.fresh ?? []);
    const { log } = this.#context;
    if (failures.length > 0) {
      for (const model of fresh) this.#creator.retire(model);
      log.info(`failed to load '${polled.id.name}'`, { model: polled.id.name });
      throw new TritonError("INVALID_ARG", failures.join(""), { reason: "LOAD_REQUEST_FAILED" });
    }
    // New versions come first, so that a request for any version always finds one.
    for (const model of fresh) this.#publish(model);
    for (const model of this.#serving(polled.id)) {
      if (!versions.includes(model.version)) this.#creator.retire(model);
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
      .map((model) => this.#creator.retire(model));
    return Promise.all(ended).then(() => {});
  }

  /** Versions of a model that are ready. */
  readyVersions({ name, namespace }: ModelId): number[] {
    const versions = this.#context.registry.versions(name, namespace);
    return versions.filter(({ state }) => state === "READY").map(({ version }) => version);
  }

  /** Forgets failed versions that are not requested any more. Otherwise they would keep the server from being ready. */
  forgetFailures({ name, namespace }: ModelId): void {
    const { registry } = this.#context;
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
    const { registry, log } = this.#context;
    const { name, namespace } = polled.id;
    const serving = this.#serving(polled.id).find((model) => model.version === version);
    if (serving !== undefined && this.#canStay(serving, polled, previous)) {
      return this.#permits.run(() => this.#update(serving, polled));
    }
    log.info(`loading: ${name}:${version}`, { model: name, version });
    const leaving = this.#loaded(polled.id).find((model) => model.version === version && model !== serving);
    if (leaving !== undefined) this.#creator.retire(leaving);
    const show = (state: "LOADING" | "UNAVAILABLE", reason = "") => {
      if (serving === undefined) registry.add(new AbsentVersion(name, namespace, version, state, reason));
    };
    show("LOADING");
    try {
      const fresh = await this.#permits.run(() =>
        this.#creator.create(polled, version, serving === undefined),
      );
      this.#prepared.set(fresh, polled.config);
      return { version, fresh };
    } catch (error) {
      const reason = statusText(error);
      show("UNAVAILABLE", reason);
      return { version, failure: `version ${version} is at UNAVAILABLE state: ${reason};` };
    }
  }

  #canStay(serving: ModelVersion, polled: PolledModel, previous: PolledModel | undefined): boolean {
    const prepared = this.#prepared.get(serving);
    return (
      !serving.isEnsemble &&
      prepared !== undefined &&
      !isVersionModified(previous?.times, polled.times, serving.version) &&
      !needsReload(prepared, polled.config)
    );
  }

  /** Applies changed instance groups to a version in service. */
  async #update(serving: ModelVersion, polled: PolledModel): Promise<VersionOutcome> {
    const { version } = serving;
    const { instanceGroup } = polled.config;
    try {
      const isSame = isDeepStrictEqual(this.#prepared.get(serving)?.instanceGroup, instanceGroup);
      const update = isSame
        ? undefined
        : await serving.updateInstances(this.#groupsFor(serving.config, instanceGroup));
      serving.reason = "";
      this.#prepared.set(serving, polled.config);
      return { version, ...update };
    } catch (error) {
      const reason = statusText(error);
      serving.reason = reason;
      this.#context.log.error(`failed to load '${serving.name}' version ${version}: ${reason}`);
      return { version, failure: `version ${version} is at READY state: ${reason};` };
    }
  }

  /** Fills in the fields that instance groups leave open. */
  #groupsFor(config: ModelConfig, instanceGroup: ModelConfig["instanceGroup"]): ModelConfig["instanceGroup"] {
    const { gpus } = this.#context;
    const completed = completeInstanceGroups({ ...config, instanceGroup }, gpus);
    const problems = instanceGroupProblems(completed, gpus);
    if (problems.length > 0)
      throw new TritonError("INVALID_ARG", problems.join("\n"), { reason: "INVALID_CONFIG" });
    return completed.instanceGroup;
  }

  #publish(model: ModelVersion): void {
    const { registry } = this.#context;
    const previous = this.#loaded(model).find(({ version }) => version === model.version);
    model.publish();
    registry.add(model);
    if (previous !== undefined && previous !== model) this.#creator.retire(previous);
  }

  #serving(id: ModelId): ModelVersion[] {
    return this.#loaded(id).filter(({ state }) => state === "READY");
  }

  /** All created versions of a model in any state. */
  #loaded({ name, namespace }: ModelId): ModelVersion[] {
    return this.#context.registry
      .versions(name, namespace)
      .filter((one) => one instanceof ModelVersion)
      .filter(({ directory }) => directory !== undefined);
  }
}

/**
 * The existing versions of a model that its policy selects, ascending.
 *
 * @throws TritonError INVALID_ARG when there are none
 */
async function findVersions({ id, directory, config }: PolledModel, log: Log): Promise<readonly number[]> {
  const found = readVersionDirectories(await subdirectories(directory));
  for (const line of found.ignored) log.warning(line);
  const { versions, missing } = versionsToLoad(found.versions, config.versionPolicy ?? {});
  for (const version of missing) {
    log.error(
      `version ${version} is specified for model '${id.name}', but the version directory is not present`,
    );
  }
  if (versions.length > 0) return versions;
  throw new TritonError(
    "INVALID_ARG",
    `at least one version must be available under the version policy of model '${id.name}'`,
    { reason: "INVALID_CONFIG" },
  );
}

/** The context for creating and retiring versions. */
interface CreatorContext extends CreateContext {
  readonly registry: ModelRegistry;
  /** Number of retries for a version that fails to load. */
  readonly retryCount: number;
}

/**
 * Creates versions of models and retires them. From its creation until it is unloaded, a version holds its directory (a
 * copy, or the files of a load request) and its repository agents.
 */
class VersionCreator {
  readonly #context: CreatorContext;
  /** Hold of each version on its repository agents. */
  readonly #agents = new WeakMap<ModelVersion, ReturnType<AgentChain["hold"]>>();
  readonly #afterUnload = new WeakMap<ModelVersion, () => void>();

  constructor(context: CreatorContext) {
    this.#context = context;
  }

  /**
   * Creates a version and loads it. A version that fails is retried, at most `retryCount` times.
   *
   * @param visible whether the registry shows the version while it loads
   * @throws the error of the last attempt
   */
  async create(polled: PolledModel, version: number, visible: boolean): Promise<ModelVersion> {
    for (let left = this.#context.retryCount; ; left--) {
      try {
        return await this.#create(polled, version, visible);
      } catch (error) {
        const { name } = polled.id;
        this.#context.log.error(`failed to load '${name}' version ${version}: ${statusText(error)}`, {
          model: name,
          version,
        });
        if (left <= 0) throw error;
      }
    }
  }

  /** Waits for the requests of a version, and unloads it. */
  retire(model: ModelVersion): Promise<void> {
    this.#agents.get(model)?.leaves();
    this.#agents.delete(model);
    const ended = model.unload(Number.POSITIVE_INFINITY);
    this.#context.registry.retire(model, ended);
    void ended.then(() => {
      const after = this.#afterUnload.get(model);
      this.#afterUnload.delete(model);
      after?.();
    });
    return ended;
  }

  async #create(polled: PolledModel, version: number, visible: boolean): Promise<ModelVersion> {
    const model = await createVersion(polled, version, this.#context);
    if (visible && !model.isEnsemble) this.#context.registry.add(model);
    const agents = polled.agents?.hold();
    if (agents !== undefined) this.#agents.set(model, agents);
    try {
      await model.loaded;
    } catch (error) {
      agents?.leaves();
      agents?.gone();
      throw error;
    }
    polled.override?.retain();
    polled.copy?.retain();
    this.#afterUnload.set(model, () => {
      this.#context.log.info(`successfully unloaded '${model.name}' version ${version}`, {
        model: model.name,
        version,
      });
      void polled.override?.release();
      void polled.copy?.release();
      agents?.gone();
    });
    return model;
  }
}

/**
 * Whether a changed configuration requires a reload of the model. Instance groups can be changed while it serves, and
 * the version policy only selects the versions that serve.
 */
export function needsReload(before: ModelConfig, after: ModelConfig): boolean {
  return !isDeepStrictEqual(withoutPlacement(before), withoutPlacement(after));
}

function withoutPlacement({ instanceGroup: _, versionPolicy: __, ...rest }: ModelConfig) {
  return rest;
}
