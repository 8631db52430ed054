import { statusText } from "@tritonjs/protocol";
import type { ModelVersion } from "../model/model-version.js";
import type { ModelRegistry } from "../model/registry.js";
import type { AgentChain } from "./agents/agent-chain.js";
import { type CreateContext, createVersion } from "./create-version.js";
import type { PolledModel } from "./poll-model.js";

/** The context for creating and retiring versions. */
export interface CreatorContext extends CreateContext {
  readonly registry: ModelRegistry;
  /** Number of retries for a version that fails to load. */
  readonly retryCount: number;
}

/**
 * Creates versions of models and retires them. From its creation until it is unloaded, a version holds its directory (a
 * copy, or the files of a load request) and its repository agents.
 */
export class VersionCreator {
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
