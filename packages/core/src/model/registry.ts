import { TritonError } from "../errors/triton-error.js";
import type { MemberOf } from "./ensemble-members.js";
import type { ModelVersion } from "./model-version.js";

/** All model versions by name, and the look-ups of the protocol with Triton's texts. */
export class ModelRegistry {
  readonly #models = new Map<string, Map<number, ModelVersion>>();
  readonly #ensembles = new Set<ModelVersion>();
  #following = false;

  add(model: ModelVersion): void {
    let versions = this.#models.get(model.name);
    if (versions === undefined) {
      versions = new Map();
      this.#models.set(model.name, versions);
    }
    versions.set(model.version, model);
    if (model.isEnsemble) this.#ensembles.add(model);
    model.onStateChange = () => this.#tellEnsembles();
    this.#tellEnsembles();
  }

  remove(model: ModelVersion): void {
    const versions = this.#models.get(model.name);
    versions?.delete(model.version);
    if (versions?.size === 0) this.#models.delete(model.name);
    this.#ensembles.delete(model);
    model.onStateChange = undefined;
    this.#tellEnsembles();
  }

  has(name: string, version: number): boolean {
    return this.#models.get(name)?.has(version) ?? false;
  }

  /** All versions of all models, by name and then by version. */
  all(): ModelVersion[] {
    return [...this.#models.keys()].sort().flatMap((name) => this.versions(name));
  }

  /** All versions of one model, ascending. */
  versions(name: string): ModelVersion[] {
    return [...(this.#models.get(name)?.values() ?? [])].sort((a, b) => a.version - b.version);
  }

  /** True while a version of a model is loading. */
  isLoading(name: string): boolean {
    return this.versions(name).some((model) => model.state === "LOADING");
  }

  /** Resolves when no version of a model is loading any more; does not care how loading went. */
  async loading(name: string): Promise<void> {
    for (const model of this.versions(name)) if (model.state === "LOADING") await model.ready.catch(() => {});
  }

  /**
   * Resolves when every model is ready.
   *
   * @throws TritonError UNAVAILABLE that names every model that failed to load, and why, and every ensemble that
   * lacks a member.
   */
  async allReady(): Promise<void> {
    const failures: string[] = [];
    const failed = ({ name, version }: ModelVersion, reason: string) =>
      failures.push(`model '${name}' version ${version}: ${reason}`);
    for (const model of this.all()) {
      if (!model.isEnsemble)
        await model.ready.catch((error) => failed(model, TritonError.from(error).message));
    }
    for (const model of this.#ensembles) if (model.state !== "READY") failed(model, model.reason);
    if (failures.length > 0) throw new TritonError("UNAVAILABLE", `failed to load ${failures.join("; ")}`);
  }

  /**
   * The version that a request means: the one it names, or the highest that is ready.
   *
   * @throws TritonError NOT_FOUND for an unknown model or version, UNAVAILABLE for one that is not ready,
   * INVALID_ARG for a version that is not a number.
   */
  find(name: string, requested: string): ModelVersion {
    const versions = this.#models.get(name);
    const version = parseVersion(requested);
    if (versions === undefined) throw unknown(`'${name}' is not found`);
    if (version === undefined) {
      const ready = this.versions(name).filter((model) => model.state === "READY");
      const latest = ready.at(-1);
      if (latest === undefined) throw unknown(`'${name}' has no available versions${this.#whyNot(name)}`);
      return latest;
    }
    const model = versions.get(Number(version));
    if (model === undefined) throw unknown(`'${name}' version ${version} is not found`);
    if (model.state !== "READY") {
      throw new TritonError(
        "UNAVAILABLE",
        `Request for unknown model: '${name}' version ${version} is not at ready state${this.#whyNot(name)}`,
      );
    }
    return model;
  }

  /**
   * The version that a step of an ensemble means.
   *
   * @throws TritonError UNAVAILABLE for one that is gone: the ensemble's client did not ask for it.
   */
  findMember(name: string, version: string): ModelVersion {
    try {
      return this.find(name, version);
    } catch (error) {
      throw new TritonError("UNAVAILABLE", TritonError.from(error).message, { cause: error });
    }
  }

  /** The model of a step of an ensemble. */
  readonly memberOf: MemberOf = ({ modelName, modelVersion }) => {
    const versions = this.versions(modelName)
      .filter(({ version }) => modelVersion === -1 || version === modelVersion)
      .reverse();
    return (
      versions.find((model) => model.state === "READY") ??
      versions.find((model) => model.state === "LOADING") ??
      versions[0]
    );
  };

  /** What keeps an ensemble from being ready. */
  #whyNot(name: string): string {
    const reasons = this.versions(name).map((model) => (model.isEnsemble ? model.reason : ""));
    return reasons
      .filter((reason) => reason !== "")
      .map((reason) => `: ${reason}`)
      .join("");
  }

  /** Lets ensembles look at their members until none of them changes: one may be part of another. */
  #tellEnsembles(): void {
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

/**
 * Reads a version as C++ `stol` does: leading space and sign, then as many digits as there are; the rest is not
 * looked at. Undefined for an empty string.
 *
 * @throws TritonError INVALID_ARG when there is no 64-bit number, or a negative one.
 */
export function parseVersion(text: string): bigint | undefined {
  if (text === "") return undefined;
  const digits = /^\s*([+-]?)0*(\d+)/.exec(text);
  const version = digits === null ? MAX_VERSION + 1n : BigInt(digits[2]!.slice(0, 20));
  if (version > MAX_VERSION) {
    throw new TritonError(
      "INVALID_ARG",
      `failed to get model version from specified version string '${text}' (details: stol), ` +
        "version should be an integral value > 0",
    );
  }
  if (digits![1] === "-" && version > 0n) {
    throw new TritonError(
      "INVALID_ARG",
      `invalid model version specified '${text}' , version should be an integral value > 0`,
    );
  }
  return version;
}

const MAX_VERSION = 2n ** 63n - 1n;

function unknown(what: string): TritonError {
  return new TritonError("NOT_FOUND", `Request for unknown model: ${what}`);
}
