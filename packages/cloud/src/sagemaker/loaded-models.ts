import type { InferenceService } from "@tritonjs/core/frontend";
import { TritonError } from "@tritonjs/protocol";
import { placeOf } from "./model-url.js";

/** A model that the platform has loaded. */
export interface EndpointModel {
  /** Name of the model in this server. */
  readonly name: string;
  /** Directory that is registered as its repository. */
  readonly repository: string;
}

/** The models of a multi-model endpoint, by the names that the platform gives them. */
export class LoadedModels {
  readonly #service: InferenceService;
  readonly #root: string;
  readonly #unloadTimeoutMs: number;
  readonly #models = new Map<string, EndpointModel>();
  /** Names whose load is in flight. */
  readonly #loading = new Set<string>();

  /**
   * @param root directory of all unpacked archives
   * @param unloadTimeoutMs longest time that {@link unload} waits for the requests of a model
   */
  constructor(service: InferenceService, root: string, unloadTimeoutMs: number) {
    this.#service = service;
    this.#root = root;
    this.#unloadTimeoutMs = unloadTimeoutMs;
  }

  /** The models in service, by the platform's names. */
  inService(): readonly (readonly [key: string, model: EndpointModel])[] {
    return [...this.#models].filter(([, { name }]) => this.#service.isModelReady(name, ""));
  }

  /** The model of a name that the platform gave. */
  find(key: string): EndpointModel | undefined {
    return this.#models.get(key);
  }

  /**
   * Loads the model of an archive.
   *
   * @param key name that the platform gives it
   * @param url directory to which the platform has unpacked the archive
   * @param name name of the model in this server
   * @throws TritonError ALREADY_EXISTS for a name that is in use; otherwise the error of the load. After an error,
   * nothing stays registered.
   */
  async load(key: string, url: string, name: string): Promise<void> {
    if (this.#models.has(key) || this.#loading.has(key)) {
      throw new TritonError("ALREADY_EXISTS", `model '${key}' is already loaded`);
    }
    this.#loading.add(key);
    try {
      const { repository, directory } = await placeOf(url, this.#root);
      await this.#service.registerModelRepository!(repository, { [directory]: name });
      try {
        await this.#service.loadModel(name, {});
      } catch (error) {
        this.#service.unregisterModelRepository!(repository);
        throw error;
      }
      this.#models.set(key, { name, repository });
    } finally {
      this.#loading.delete(key);
    }
  }

  /**
   * Unloads a model and the models that only it needs. Resolves when its requests are answered, or after the time
   * limit.
   *
   * @returns false if the model is not loaded
   */
  async unload(key: string): Promise<boolean> {
    const model = this.#models.get(key);
    if (model === undefined) return false;
    this.#models.delete(key);
    try {
      await this.#service.unloadModel(model.name, { unloadDependents: true });
      await this.#unloaded(model.name);
    } finally {
      this.#service.unregisterModelRepository!(model.repository);
    }
    return true;
  }

  /** Resolves when no version of the model is in service or ending. */
  #unloaded(name: string): Promise<void> {
    let resolve: () => void = () => {};
    const unloaded = new Promise<void>((done) => {
      resolve = done;
    });
    const look = async () => {
      const rows = await this.#service.repositoryIndex(false);
      const left = rows.filter(
        (row) => row.name === name && row.state !== undefined && row.state !== "UNAVAILABLE",
      );
      if (left.length === 0) resolve();
    };
    const stopListening = this.#service.onChange(() => void look().catch(resolve));
    const timer = setTimeout(resolve, this.#unloadTimeoutMs);
    void look().catch(resolve);
    return unloaded.finally(() => {
      stopListening();
      clearTimeout(timer);
    });
  }
}
