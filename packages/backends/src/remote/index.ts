import type {
  AutoCompleteConfig,
  Backend,
  BackendFactory,
  Executor,
  ExecutorContext,
  ModelDescription,
  ModelFiles,
} from "@tritonjs/core/backend";
import { DeclaredParameters, wrongParameter } from "@tritonjs/core/internal";
import { definedMembers, errorFor, toConfigDataType } from "@tritonjs/protocol";
import { RemoteExecutor } from "./remote-executor.js";
import {
  type RemoteDescription,
  type RemoteOptions,
  type RemoteProtocol,
  remoteSettings,
} from "./replica-client.js";
import { ReplicaPool } from "./replica-pool.js";

/*
 * `@tritonjs/backends/remote`: models of other servers as models of this one. Only this part of the package needs
 * `@tritonjs/core`.
 */

export type { Fetch } from "@tritonjs/client/http";
export type { Lookup } from "@tritonjs/client/internal";

export type { RemoteOptions, RemoteProtocol } from "./replica-client.js";

/** A model on other servers, as `bind` takes it. */
export interface RemoteModel extends Backend {
  /** Closes the connections of a model that was not bound. */
  close(): Promise<void>;
}

/**
 * A model that runs on other servers: replicas behind any server of the v2 (KServe / Triton) protocol. The local model
 * batches, orders, caches and streams as any other; each batch goes to an idle replica. Waits for the first ready
 * replica, and reads inputs, outputs and the largest batch from its configuration. So `bind` needs none of them.
 *
 * The connections are closed when the bound model stops, or with `close()` of the backend.
 *
 * @throws TritonError INVALID_ARG for invalid options; UNAVAILABLE when no replica is ready within `initTimeoutMs`;
 * UNSUPPORTED for a decoupled model over HTTP.
 * @example
 * ```ts
 * const inferFunc = await remote({ urls: ["grpc://gpu1:8001", "grpc://gpu2:8001"], model: "resnet" });
 * triton.bind({ modelName: "resnet", inferFunc });
 * ```
 */
export async function remote(options: RemoteOptions): Promise<RemoteModel> {
  const settings = remoteSettings(options);
  const pool = new ReplicaPool(settings);
  try {
    const { client, url } = await pool.firstServing();
    const description = await client.describe({ timeoutMs: settings.timeoutMs });
    if (description.decoupled === true && client.stream === undefined) {
      const text = `model '${settings.model}' at ${url} is decoupled: expected an address of gRPC, as HTTP has no streams of tensors`;
      throw errorFor("DECOUPLED_MODEL", text);
    }
    return new RemoteBackend(pool, description);
  } catch (error) {
    pool.close();
    throw error;
  }
}

class RemoteBackend implements Backend {
  readonly backendName = "remote";
  readonly platform = "";
  #executors = 0;

  /** @param description the model as a server describes it */
  constructor(
    private readonly pool: ReplicaPool,
    private readonly description: RemoteDescription,
  ) {}

  describe(): ModelDescription {
    return this.description;
  }

  /** Completes the configuration of a repository from that of the server. */
  completeConfig(config: AutoCompleteConfig): void {
    const { maxBatchSize, decoupled, inputs, outputs, asInConfig } = this.description;
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
    if (this.pool.closed) {
      const text = `the replicas of model '${this.pool.settings.model}' are closed: call remote() again`;
      throw errorFor("CLIENT_CLOSED", text);
    }
    this.#executors++;
    return new RemoteExecutor(context, this.pool, this.description, () => {
      this.#executors--;
      if (this.#executors === 0) this.pool.close();
    });
  }

  async close(): Promise<void> {
    this.pool.close();
  }
}

const PARAMETERS = new DeclaredParameters({
  connect: ["urls"],
  value: [
    "model_name",
    "model_version",
    "protocol",
    "access_token",
    "concurrency",
    "retries",
    "hedge_after_ms",
    "timeout_ms",
    "init_timeout_ms",
    "lookup_interval_ms",
    "idempotent",
    "retry_unavailable",
  ],
});

type RemoteParameter = Parameters<typeof PARAMETERS.text>[1];

/**
 * The backend `remote` of a repository. The parameters of the configuration are the options of {@link remote}, in
 * Triton's spelling; the settings of the backend are defaults for all models.
 */
export const remoteBackend: BackendFactory = PARAMETERS.declaredBy((source) =>
  remote(remoteOptionsOf(source)),
);

/**
 * Reads the options from the parameters of a configuration.
 *
 * @throws TritonError INVALID_ARG that names the parameter, the expected and the given value.
 */
export function remoteOptionsOf(source: Pick<ModelFiles, "name" | "config" | "settings">): RemoteOptions {
  const text = (key: RemoteParameter) => PARAMETERS.text(source, key);
  const urls = (text("urls") ?? "").split(/[\s,]+/).filter((url) => url !== "");
  if (urls.length === 0)
    throw wrongParameter(source.name, "urls", "addresses of servers, separated by commas", text("urls"));
  const read = (
    key: RemoteParameter,
    expected: string,
    parse: (value: string) => number | boolean | undefined,
  ) => {
    const value = text(key);
    const parsed = value === undefined ? undefined : parse(value);
    if (value === undefined || parsed !== undefined) return parsed;
    throw wrongParameter(source.name, key, expected, value);
  };
  const number = (key: RemoteParameter) =>
    read(key, "a number", (value) =>
      value.trim() === "" || Number.isNaN(Number(value)) ? undefined : Number(value),
    ) as number | undefined;
  const flag = (key: RemoteParameter) =>
    read(key, "true or false", (value) => value === "true" || (value === "false" ? false : undefined)) as
      | boolean
      | undefined;
  return {
    urls,
    model: text("model_name") ?? source.name,
    ...definedMembers({
      concurrency: number("concurrency"),
      retries: number("retries"),
      hedgeAfterMs: number("hedge_after_ms"),
      timeoutMs: number("timeout_ms"),
      initTimeoutMs: number("init_timeout_ms"),
      lookupIntervalMs: number("lookup_interval_ms"),
      idempotent: flag("idempotent"),
      retryUnavailable: flag("retry_unavailable"),
      version: text("model_version"),
      protocol: text("protocol") as RemoteProtocol | undefined,
      accessToken: text("access_token"),
    }),
  };
}

/** Backends for models of a repository, by the name in `config.pbtxt`. */
export const repositoryBackends: Readonly<Record<string, BackendFactory>> = { remote: remoteBackend };
