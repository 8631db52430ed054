import type { CallOptions } from "../client-options.js";
import { toBase64 } from "../json/base64.js";
import { type JsonSource, toJson } from "../json/write-json.js";
import { segment } from "../paths.js";
import { jsonOf } from "./http-endpoint.js";
import type { ModelIndexAnswer } from "./server-answers.js";
import { ServerCalls } from "./server-calls.js";

/** Options for loading a model. */
export interface LoadModelOptions extends CallOptions {
  /** Replaces the configuration in the repository: Triton's fields, as an object or as JSON. */
  readonly config?: JsonSource;
  /**
   * Replaces the files of the model's directory: contents by relative path, such as `1/model.onnx`. Requires `config`.
   */
  readonly files?: Readonly<Record<string, Uint8Array>>;
}

/** Calls of the model repository. */
export abstract class RepositoryCalls extends ServerCalls {
  /** Returns the models of the repository; with `ready` only models that can infer. */
  async getModelRepositoryIndex({
    ready,
    ...call
  }: CallOptions & { ready?: boolean } = {}): Promise<ModelIndexAnswer[]> {
    const answer = await this.post("v2/repository/index", { ready }, "reads", call);
    return jsonOf(answer) as unknown as ModelIndexAnswer[];
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
    const parameters: Record<string, JsonSource> = {};
    if (config !== undefined) parameters.config = typeof config === "string" ? config : toJson(config);
    for (const [path, content] of Object.entries(files)) {
      parameters[path.startsWith("file:") ? path : `file:${path}`] = toBase64(content);
    }
    await this.post(repositoryPath(modelName, "load"), { parameters }, "changes", call);
  }

  /** Unloads a model; with `unloadDependents` also the models that were loaded because of it. */
  async unloadModel(
    modelName: string,
    { unloadDependents = false, ...call }: CallOptions & { unloadDependents?: boolean } = {},
  ): Promise<void> {
    const parameters = { unload_dependents: unloadDependents };
    await this.post(repositoryPath(modelName, "unload"), { parameters }, "changes", call);
  }
}

function repositoryPath(modelName: string, action: string): string {
  return `v2/repository/models/${segment("model name", modelName)}/${action}`;
}
