import { definedMembers, type Tensor, type TritonError } from "@tritonjs/protocol";
import { nameOptions } from "../grpc/carrier/grpc-servers.js";
import { InferenceServerClient as GrpcClient } from "../grpc/inference-server-client.js";
import type { ModelConfigTensor } from "../http/calls/server-answers.js";
import { InferenceServerClient as HttpClient } from "../http/inference-server-client.js";
import type { InferResult } from "../infer/infer-result.js";
import type { CommonCallOptions } from "../options/client-options.js";
import type { RequestOptions } from "../options/infer-options.js";
import { describeConfig, describeMetadata, type RemoteDescription } from "./remote-description.js";
import { protocolOf, type RemoteSettings } from "./remote-options.js";

/** A batch or a request on its way to a replica. */
export interface RemoteCall extends CommonCallOptions, RequestOptions {
  readonly inputs: Readonly<Record<string, Tensor>>;
  readonly outputs?: readonly string[];
}

/** The calls of one model at one server. */
export interface ReplicaClient {
  infer(call: RemoteCall): Promise<InferResult>;
  /** Yields the responses of a decoupled model; undefined over HTTP, which has no tensors in streams. */
  readonly stream: ((call: RemoteCall) => AsyncGenerator<InferResult, void, void>) | undefined;
  isReady(call: CommonCallOptions): Promise<boolean>;
  describe(call: CommonCallOptions): Promise<RemoteDescription>;
  close(): void;
}

/** The pool has its own pauses and retries. */
const NO_RETRIES = { retries: 0 };

/** grpc-js would pause for up to two minutes. Pings detect a dead peer that never closes its connection. */
const CHANNEL = {
  "grpc.initial_reconnect_backoff_ms": 100,
  "grpc.max_reconnect_backoff_ms": 2_000,
  "grpc.keepalive_time_ms": 30_000,
  "grpc.keepalive_timeout_ms": 10_000,
};

/**
 * Opens the client of one replica.
 *
 * @param url an address of `settings.urls`, or one that a lookup returned
 */
export function openReplicaClient(url: string, settings: RemoteSettings): ReplicaClient {
  return protocolOf(url, settings.protocol) === "grpc" ? overGrpc(url, settings) : overHttp(url, settings);
}

function overGrpc(url: string, settings: RemoteSettings): ReplicaClient {
  const { model, headers, accessToken, tls } = settings;
  const versioned = versionOf(settings);
  const client = new GrpcClient(url, {
    ...NO_RETRIES,
    ...definedMembers({ headers, accessToken, tls }),
    channelOptions: {
      ...CHANNEL,
      ...nameOptions(settings.urls, definedMembers({ tls })),
      ...settings.channelOptions,
    },
  });
  return {
    infer: (call) => client.infer(model, { ...call, ...versioned }),
    stream: async function* ({
      headers: callHeaders,
      signal,
      timeoutMs = Number.POSITIVE_INFINITY,
      ...request
    }) {
      const one = { ...request, ...versioned, modelName: model, enableEmptyFinalResponse: true };
      const options = { ...definedMembers({ headers: callHeaders, signal }), timeoutMs, endOnError: true };
      for await (const { result, error, final } of client.streamInfer([one], options)) {
        if (error !== undefined) throw error;
        if (!final || result.tensors.size > 0) yield result;
      }
    },
    isReady: (call) => client.isModelReady(model, { ...call, ...versioned }),
    describe: async (call) => {
      const config = await orMissing(client.getModelConfig(model, { ...call, ...versioned }));
      if (config === undefined) return describeMetadata(model, await client.getModelMetadata(model, call));
      return describeConfig(model, {
        maxBatchSize: config.maxBatchSize,
        decoupled: config.modelTransactionPolicy?.decoupled === true,
        sequences: config.sequenceBatching !== undefined,
        inputs: config.input,
        outputs: config.output,
      });
    },
    close: () => client.close(),
  };
}

function overHttp(url: string, settings: RemoteSettings): ReplicaClient {
  const { model, headers, accessToken, fetch } = settings;
  const versioned = versionOf(settings);
  const client = new HttpClient(url, { ...NO_RETRIES, ...definedMembers({ headers, accessToken, fetch }) });
  const tensor = ({ name, data_type: dataType, dims, optional }: ModelConfigTensor) => ({
    name,
    dataType,
    dims,
    optional,
  });
  return {
    infer: (call) => client.infer(model, { ...call, ...versioned }),
    stream: undefined,
    isReady: (call) => client.isModelReady(model, { ...call, ...versioned }),
    describe: async (call) => {
      const config = await orMissing(client.getModelConfig(model, { ...call, ...versioned }));
      if (config === undefined) return describeMetadata(model, await client.getModelMetadata(model, call));
      return describeConfig(model, {
        maxBatchSize: Number(config.max_batch_size ?? 0),
        decoupled: config.model_transaction_policy?.decoupled === true,
        sequences: config.sequence_batching !== undefined,
        inputs: config.input.map(tensor),
        outputs: config.output.map(tensor),
      });
    },
    close: () => client.close(),
  };
}

/** Returns undefined if the server lacks this call: not every server of the protocol has configurations. */
async function orMissing<T>(answer: Promise<T>): Promise<T | undefined> {
  try {
    return await answer;
  } catch (error) {
    const { code } = error as TritonError;
    if (code === "NOT_FOUND" || code === "UNSUPPORTED") return undefined;
    throw error;
  }
}

function versionOf({ version }: RemoteSettings): { modelVersion?: string | number } {
  return version === undefined ? {} : { modelVersion: version };
}
