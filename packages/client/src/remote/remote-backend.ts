import type { Backend, Executor, ExecutorContext, ModelDescription } from "@tritonjs/core/backend";
import type { AutoCompleteConfig } from "@tritonjs/core/config";
import { TritonError, toConfigDataType } from "@tritonjs/protocol";
import type { RemoteDescription } from "./remote-description.js";
import { RemoteExecutor } from "./remote-executor.js";
import type { ReplicaPool } from "./replica-pool.js";

/** A model on other servers, for `bind`. */
export class RemoteBackend implements Backend {
  readonly backendName = "remote";
  readonly platform = "";
  readonly #pool: ReplicaPool;
  readonly #description: RemoteDescription;
  #executors = 0;

  /** @param description the model as a server describes it */
  constructor(pool: ReplicaPool, description: RemoteDescription) {
    this.#pool = pool;
    this.#description = description;
  }

  describe(): ModelDescription {
    return this.#description;
  }

  /** Completes the configuration of a repository from that of the server. */
  completeConfig(config: AutoCompleteConfig): void {
    const { maxBatchSize, decoupled, inputs, outputs, asInConfig } = this.#description;
    const { maxBatchSize: written, dynamicBatching, sequenceBatching } = config.config;
    if (maxBatchSize !== undefined && (written === 0 || written > maxBatchSize))
      config.setMaxBatchSize(maxBatchSize);
    const { maxBatchSize: size } = config.config;
    if (size > 1 && dynamicBatching === undefined && sequenceBatching === undefined)
      config.setDynamicBatching();
    if (decoupled === true) config.setModelTransactionPolicy({ decoupled });
    const dimsOf = (shape: readonly number[]): readonly number[] =>
      size > 0 && asInConfig !== true ? shape.slice(1) : shape;
    for (const { name, dtype, shape, optional = false } of inputs)
      config.addInput({ name, dataType: toConfigDataType(dtype), dims: dimsOf(shape), optional });
    for (const { name, dtype, shape } of outputs)
      config.addOutput({ name, dataType: toConfigDataType(dtype), dims: dimsOf(shape) });
  }

  createExecutor(context: ExecutorContext): Executor {
    if (this.#pool.closed) {
      throw new TritonError(
        "UNAVAILABLE",
        `the replicas of model '${this.#pool.settings.model}' are closed: call remote() again`,
        { reason: "CLIENT_CLOSED" },
      );
    }
    this.#executors++;
    return new RemoteExecutor(context, this.#pool, this.#description, () => {
      this.#executors--;
      if (this.#executors === 0) this.#pool.close();
    });
  }

  async close(): Promise<void> {
    this.#pool.close();
  }
}
