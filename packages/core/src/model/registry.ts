import { errorFor, TritonError } from "@tritonjs/protocol";
import { getOrAdd } from "../system/collections.js";
import type { MemberOf } from "./ensemble-members.js";
import { ModelVersion, type VersionRouter } from "./model-version.js";
import { isReady, parseVersion, pickNamespace, pickVersion, type Versions } from "./pick-version.js";
import { AbsentVersion, type RegisteredVersion } from "./version-status.js";

/** All model versions by name, and the look-ups of the protocol with Triton's texts. */
export class ModelRegistry {
  readonly #models = new Map<string, Map<string, Versions>>();
  /** Models that stay known without versions. */
  readonly #announced = new WeakSet<Versions>();
  readonly #ensembles = new Set<ModelVersion>();
  /** Replaced versions with requests in flight. */
  readonly #retired = new Set<ModelVersion>();
  readonly #listeners = new Set<() => void>();
  /** The version that each name means without a number, while no state changes. */
  readonly #latest = new Map<string, ModelVersion>();
  /** Models whose requests without a version are divided among versions. */
  readonly #routers = new Map<string, { readonly namespace: string; readonly router: VersionRouter }>();
  #following = false;

  /** @param hasNamespaces tells whether models of several places may have one name */
  constructor(private readonly hasNamespaces: () => boolean = () => false) {}

  get namespacing(): boolean {
    return this.hasNamespaces();
  }

  /** Adds a version, which replaces one of the same number. */
  add(version: RegisteredVersion): void {
    const versions = this.#versionsOf(version.name, version.namespace);
    const previous = versions.get(version.version);
    versions.set(version.version, version);
    if (previous instanceof ModelVersion && previous !== version) this.#release(previous);
    if (version instanceof ModelVersion) {
      if (version.isEnsemble) this.#ensembles.add(version);
      version.router = this.routerOf(version.name, version.namespace);
      version.onStateChange = () => this.#changed();
    }
    this.#changed();
  }

  /** Divides the requests to a model that name no version; undefined ends that. Call it again when the version changes. */
  setRouter(name: string, namespace: string, router: VersionRouter | undefined): void {
    if (router === undefined) this.#routers.delete(name);
    else this.#routers.set(name, { namespace, router });
    for (const one of this.versions(name)) {
      if (one instanceof ModelVersion) one.router = this.routerOf(name, one.namespace);
    }
    this.#changed();
  }

  routerOf(name: string, namespace: string): VersionRouter | undefined {
    const routed = this.#routers.get(name);
    return routed?.namespace === namespace ? routed.router : undefined;
  }

  /** Shows a version that cannot serve: it is loading, or could not be created. */
  show(id: Pick<RegisteredVersion, "name" | "namespace" | "version" | "state" | "reason">): void {
    this.add(new AbsentVersion(id.name, id.namespace, id.version, id.state, id.reason));
  }

  /** The versions of a model that were created from files, ascending. */
  created(name: string, namespace: string): ModelVersion[] {
    return this.versions(name, namespace)
      .filter((one) => one instanceof ModelVersion)
      .filter(({ directory }) => directory !== undefined);
  }

  /** A version that is in service. */
  readyVersion(name: string, namespace: string, version: number): ModelVersion | undefined {
    const found = this.#models.get(name)?.get(namespace)?.get(version);
    return found !== undefined && isReady(found) ? found : undefined;
  }

  /** The namespaces in which a model has versions that are not unloaded. */
  namespacesOf(name: string): string[] {
    const isLive = (versions: Versions) => [...versions.values()].some((one) => one.reason !== "unloaded");
    return [...(this.#models.get(name) ?? [])].flatMap(([space, versions]) =>
      isLive(versions) ? [space] : [],
    );
  }

  /**
   * Makes a model known that may have no versions: look-ups then report that none is available, not that it is unknown.
   */
  announce(name: string, namespace: string): void {
    this.#announced.add(this.#versionsOf(name, namespace));
    this.#latest.clear();
  }

  forget(name: string, namespace: string): void {
    const spaces = this.#models.get(name);
    if (spaces?.get(namespace)?.size === 0) spaces.delete(namespace);
    if (spaces?.size === 0) this.#models.delete(name);
    this.#latest.clear();
  }

  remove(version: RegisteredVersion): void {
    const { name, namespace } = version;
    const versions = this.#models.get(name)?.get(namespace);
    if (versions?.get(version.version) === version) versions.delete(version.version);
    if (versions !== undefined && !this.#announced.has(versions)) this.forget(name, namespace);
    if (version instanceof ModelVersion) this.#release(version);
    this.#changed();
  }

  /**
   * Keeps a version that look-ups no longer find in `models` until it is unloaded. Then only its state and the reason are
   * kept: a model may get new versions for as long as the server runs.
   */
  retire(model: ModelVersion, unloaded: Promise<void>): void {
    this.#retired.add(model);
    void unloaded.finally(() => {
      this.#retired.delete(model);
      const { name, namespace, version, state, reason } = model;
      if (this.#models.get(name)?.get(namespace)?.get(version) !== model) return;
      this.add(new AbsentVersion(name, namespace, version, state, reason));
    });
  }

  /**
   * Calls back whenever a version is added, removed or changes its state.
   * @returns function that ends the subscription
   */
  onChange(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  has(name: string, version: number): boolean {
    return this.#models.get(name)?.get("")?.has(version) ?? false;
  }

  all(): RegisteredVersion[] {
    return [...this.#models.keys()].sort().flatMap((name) => this.versions(name));
  }

  /** The versions of each name and namespace, in no order. */
  *spaces(): Generator<
    readonly [name: string, namespace: string, versions: ReadonlyMap<number, RegisteredVersion>]
  > {
    for (const [name, spaces] of this.#models) {
      for (const [namespace, versions] of spaces) yield [name, namespace, versions];
    }
  }

  bound(): ModelVersion[] {
    return this.models().filter((model) => model.directory === undefined);
  }

  isBound(name: string): boolean {
    return this.versions(name, "").some((one) => one instanceof ModelVersion && one.directory === undefined);
  }

  models(): ModelVersion[] {
    return [...this.all().filter((one) => one instanceof ModelVersion), ...this.#retired];
  }

  ready(name?: string): ModelVersion[] {
    return (name === undefined ? this.all() : this.versions(name)).filter(isReady);
  }

  /** All versions of one model in ascending order, of one namespace or of all. */
  versions(name: string, namespace?: string): RegisteredVersion[] {
    const spaces = this.#models.get(name);
    if (spaces === undefined) return [];
    const found = namespace === undefined ? [...spaces.values()] : [spaces.get(namespace) ?? new Map()];
    return found.flatMap((versions: Versions) => ascending(versions));
  }

  isLoading(name: string): boolean {
    return this.versions(name).some((one) => one.state === "LOADING");
  }

  /** Resolves when no version of a model is loading any more, whether loading succeeded or failed. */
  async loading(name: string): Promise<void> {
    for (const one of this.versions(name)) {
      if (one.state === "LOADING" && one instanceof ModelVersion) await one.ready.catch(() => {});
    }
  }

  /**
   * Resolves when every bound model is ready.
   *
   * @throws TritonError UNAVAILABLE that names every model that failed to load, with the reason, and every ensemble
   * that lacks a member.
   */
  async allReady(): Promise<void> {
    const failures: string[] = [];
    const failed = ({ name, version }: ModelVersion, reason: string) =>
      failures.push(`model '${name}' version ${version}: ${reason}`);
    const bound = this.bound();
    for (const model of bound) {
      if (!model.isEnsemble)
        await model.ready.catch((error) => failed(model, TritonError.from(error).message));
    }
    for (const model of bound) if (model.isEnsemble && model.state !== "READY") failed(model, model.reason);
    if (failures.length > 0) throw errorFor("LOAD_FAILED", `failed to load ${failures.join("; ")}`);
  }

  /**
   * Finds the version that a request means: the version that it names, or the highest that is ready. With a
   * router, a request without a version means that of the router.
   *
   * @throws TritonError NOT_FOUND for an unknown model or version; UNAVAILABLE for a version that is not ready;
   * INVALID_ARG for a version that is not a number, and for a name that several repositories have.
   */
  find(name: string, requested: string): ModelVersion {
    const known = requested === "" ? this.#latest.get(name) : undefined;
    if (known !== undefined) return known;
    const version = parseVersion(requested);
    const versions = pickNamespace(name, this.#models.get(name), this.namespacing);
    const picked =
      this.#routed(name, versions, version) ?? (pickVersion(name, versions, version) as ModelVersion);
    if (version === undefined) this.#latest.set(name, picked);
    return picked;
  }

  /**
   * Finds the version that a step of an ensemble means.
   *
   * @throws TritonError UNAVAILABLE for a missing version, because the ensemble's client did not ask for it.
   */
  findMember(name: string, version: string, namespace: string): ModelVersion {
    try {
      const versions = this.#models.get(name)?.get(namespace);
      return versions === undefined
        ? this.find(name, version)
        : (this.#routed(name, versions, parseVersion(version)) ??
            (pickVersion(name, versions, parseVersion(version)) as ModelVersion));
    } catch (error) {
      throw errorFor("ENSEMBLE_MEMBER_NOT_READY", TritonError.from(error).message, { cause: error });
    }
  }

  readonly memberOf: MemberOf = ({ modelName, modelVersion, modelNamespace }) => {
    const preferred = this.versions(modelName, modelNamespace ?? "");
    const versions = (preferred.length > 0 ? preferred : this.versions(modelName))
      .filter((one) => one instanceof ModelVersion)
      .filter(({ version }) => modelVersion === -1 || version === modelVersion)
      .reverse();
    return versions.find(isReady) ?? versions.find((one) => one.state === "LOADING") ?? versions[0];
  };

  /** The version that a router means, if the request names none and it is in service. */
  #routed(name: string, versions: Versions, version: bigint | undefined): ModelVersion | undefined {
    const routed = version === undefined ? this.#routers.get(name) : undefined;
    const isMeant = routed !== undefined && this.#models.get(name)?.get(routed.namespace) === versions;
    const found = isMeant ? versions.get(routed.router.version) : undefined;
    return found !== undefined && isReady(found) ? found : undefined;
  }

  #versionsOf(name: string, namespace: string): Versions {
    const spaces = getOrAdd(this.#models, name, () => new Map<string, Versions>());
    return getOrAdd(spaces, namespace, (): Versions => new Map());
  }

  #release(model: ModelVersion): void {
    model.onStateChange = undefined;
    this.#ensembles.delete(model);
  }

  #changed(): void {
    this.#latest.clear();
    this.#checkEnsembles();
    for (const listener of this.#listeners) listener();
  }

  /** Lets ensembles check their members until no state changes, because an ensemble may be part of another. */
  #checkEnsembles(): void {
    if (this.#following || this.#ensembles.size === 0) return;
    this.#following = true;
    try {
      const states = () => [...this.#ensembles].map((ensemble) => ensemble.state).join();
      for (let before = ""; before !== states(); ) {
        before = states();
        for (const ensemble of this.#ensembles) ensemble.followMembers(this.memberOf);
      }
    } finally {
      this.#following = false;
    }
  }
}

function ascending(versions: Versions): RegisteredVersion[] {
  return [...versions.values()].sort((a, b) => a.version - b.version);
}
