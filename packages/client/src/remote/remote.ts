import type { Backend } from "@tritonjs/core/backend";
import { TritonError } from "@tritonjs/protocol";
import { RemoteBackend } from "./remote-backend.js";
import type { RemoteDescription } from "./remote-description.js";
import { type RemoteOptions, remoteSettings } from "./remote-options.js";
import { ReplicaPool } from "./replica-pool.js";

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
    assertPossible(description, client.stream !== undefined, settings.model, url);
    return new RemoteBackend(pool, description);
  } catch (error) {
    pool.close();
    throw error;
  }
}

function assertPossible(
  { decoupled }: RemoteDescription,
  streams: boolean,
  model: string,
  url: string,
): void {
  if (decoupled !== true || streams) return;
  throw new TritonError(
    "UNSUPPORTED",
    `model '${model}' at ${url} is decoupled: expected an address of gRPC, as HTTP has no streams of tensors`,
    { reason: "DECOUPLED_MODEL" },
  );
}
