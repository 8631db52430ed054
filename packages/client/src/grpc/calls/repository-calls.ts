import { inference } from "@tritonjs/grpc-messages";
import type { ModelIndexEntry } from "@tritonjs/protocol";
import { method } from "../carrier/grpc-calls.js";
import type { CallOptions } from "../client-options.js";
import { ServerCalls } from "./server-calls.js";

const {
  RepositoryIndexRequest,
  RepositoryIndexResponse,
  RepositoryModelLoadRequest,
  RepositoryModelLoadResponse,
  RepositoryModelUnloadRequest,
  RepositoryModelUnloadResponse,
} = inference;

const index = method("RepositoryIndex", "reads", RepositoryIndexRequest, RepositoryIndexResponse);
const load = method(
  "RepositoryModelLoad",
  "changes",
  RepositoryModelLoadRequest,
  RepositoryModelLoadResponse,
);
const unload = method(
  "RepositoryModelUnload",
  "changes",
  RepositoryModelUnloadRequest,
  RepositoryModelUnloadResponse,
);

/** Options for loading a model. */
export interface LoadModelOptions extends CallOptions {
  /** Replaces the configuration in the repository: Triton's fields, as an object or as JSON. */
  readonly config?: string | object;
  /**
   * Replaces the files of the model's directory: contents by relative path, such as `1/model.onnx`. Requires `config`.
   */
  readonly files?: Readonly<Record<string, Uint8Array>>;
}

/** Calls of the model repository. */
export abstract class RepositoryCalls extends ServerCalls {
  /** Returns the models of the repository; with `ready` only models that can infer. */
  async getModelRepositoryIndex({
    ready = false,
    ...call
  }: CallOptions & { ready?: boolean } = {}): Promise<ModelIndexEntry[]> {
    const { models } = await this.calls.unary(index, { ready }, call);
    return models.map(({ name, version, state, reason }) => ({
      name: name ?? "",
      ...(version && { version }),
      ...(state && { state }),
      ...(reason && { reason }),
    }));
  }

  /**
   * Loads or reloads a model, and resolves when it can infer. This may take longer than other calls: see `timeoutMs`.
   *
   * @example
   * ```ts
   * await client.loadModel("resnet", { config: { max_batch_size: 8 }, timeoutMs: 300_000 });
   * ```
   */
  async loadModel(modelName: string, { config, files = {}, ...call }: LoadModelOptions = {}): Promise<void> {
    const parameters: Record<string, inference.ModelRepositoryParameter.$Properties> = {};
    if (config !== undefined) {
      parameters.config = { stringParam: typeof config === "string" ? config : JSON.stringify(config) };
    }
    for (const [path, content] of Object.entries(files)) {
      parameters[path.startsWith("file:") ? path : `file:${path}`] = { bytesParam: content };
    }
    await this.calls.unary(load, { modelName, parameters }, call);
  }

  /** Unloads a model; with `unloadDependents` also the models that were loaded because of it. */
  async unloadModel(
    modelName: string,
    { unloadDependents = false, ...call }: CallOptions & { unloadDependents?: boolean } = {},
  ): Promise<void> {
    const parameters = { unload_dependents: { boolParam: unloadDependents } };
    await this.calls.unary(unload, { modelName, parameters }, call);
  }
}
