import type { ClientOptions as GrpcClientOptions } from "@tritonjs/client/grpc";
import { InferenceServerClient as GrpcClient } from "@tritonjs/client/grpc";
import type { Fetch } from "@tritonjs/client/http";
import { InferenceServerClient as HttpClient } from "@tritonjs/client/http";
import type {
  CommonCallOptions,
  InferResult,
  Lookup,
  ModelConfigTensor,
  RequestOptions,
} from "@tritonjs/client/internal";
import { DEFAULT_LOOKUP_INTERVAL_MS, hostNameOf, listOf, nameOptions } from "@tritonjs/client/internal";
import type { ModelDescription } from "@tritonjs/core/backend";
import {
  assertOptions,
  type DataType,
  type DescribedTensor,
  definedMembers,
  errorFor,
  fromConfigDataType,
  isDataType,
  LONGEST_TIMEOUT_MS,
  type ModelMetadata,
  optionTypes,
  type Tensor,
  type TritonError,
} from "@tritonjs/protocol";

/** The protocol of the replicas. */
export type RemoteProtocol = "grpc" | "http";

/** Options of a model that runs on other servers. */
export interface RemoteOptions {
  /**
   * Addresses of the replicas: `grpc://gpu1:8001`, `grpcs://`, `http://gpu1:8000`, `https://`; `dns://name:8001` for
   * all addresses of a name.
   */
  readonly urls: string | readonly string[];
  /** Name of the model on these servers. */
  readonly model: string;
  /** Version of the model there. @default the version that the server picks */
  readonly version?: string | number;
  /** Protocol of addresses without a scheme, and of `dns://`. @default "grpc" */
  readonly protocol?: RemoteProtocol;
  /** Batches that a replica gets at the same time: one runs while the next one travels. @default 2 */
  readonly concurrency?: number;
  /**
   * True if a request may run twice. A batch whose connection is lost then runs on another replica, instead of failing.
   * @default false
   */
  readonly idempotent?: boolean;
  /** Number of further attempts of a batch on other replicas. @default 2 */
  readonly retries?: number;
  /**
   * Sends a batch that a replica rejects with UNAVAILABLE to another one. Use `false` behind proxies that may also
   * answer UNAVAILABLE after a request has run. @default true
   */
  readonly retryUnavailable?: boolean;
  /**
   * Milliseconds after which a batch without an answer also goes to an idle replica. The first answer counts. The batch
   * may run twice, and never does with `Infinity`. Not for decoupled models and sequences. @default when its replica
   * hangs: no answer for a second, and none to a probe in two
   */
  readonly hedgeAfterMs?: number;
  /** Longest time for one attempt, in milliseconds; a stream has no limit. @default 60000 */
  readonly timeoutMs?: number;
  /** Longest wait for the first ready replica, in milliseconds. @default 60000 */
  readonly initTimeoutMs?: number;
  /** Headers or metadata of every call. */
  readonly headers?: Readonly<Record<string, string>>;
  /** The access token of the servers. */
  readonly accessToken?: string;
  /** Encrypts gRPC connections. @default false, unless the address begins with `grpcs://` */
  readonly tls?: GrpcClientOptions["tls"];
  /** Options of grpc-js' channels. */
  readonly channelOptions?: GrpcClientOptions["channelOptions"];
  /** Function that sends requests over HTTP. @default the global `fetch` */
  readonly fetch?: Fetch;
  /** Finds the addresses of a host. @default that of Node.js */
  readonly lookup?: Lookup;
  /** Milliseconds between lookups. @default 5000 */
  readonly lookupIntervalMs?: number;
}

const REMOTE_OPTION_TYPES = optionTypes<RemoteOptions>({
  urls: ["array", "string"],
  model: "string",
  version: ["number", "string"],
  protocol: "string",
  concurrency: "number",
  idempotent: "boolean",
  retries: "number",
  retryUnavailable: "boolean",
  hedgeAfterMs: "number",
  timeoutMs: "number",
  initTimeoutMs: "number",
  headers: "object",
  accessToken: "string",
  tls: ["boolean", "object"],
  channelOptions: "object",
  fetch: "function",
  lookup: "function",
  lookupIntervalMs: "number",
});

type Defaulted =
  | "concurrency"
  | "idempotent"
  | "retries"
  | "retryUnavailable"
  | "timeoutMs"
  | "initTimeoutMs"
  | "lookupIntervalMs";

export type RemoteSettings = Omit<RemoteOptions, Defaulted | "urls"> &
  Required<Pick<RemoteOptions, Defaulted>> & { readonly urls: readonly string[] };

const REMOTE_DEFAULTS = {
  // With one batch, a replica is idle while its answer and the next batch travel.
  concurrency: 2,
  // A model may count, log or charge.
  idempotent: false,
  // As for the clients.
  retries: 2,
  // A server answers UNAVAILABLE before it runs a request: its queue is full, or it stops.
  retryUnavailable: true,
  // As for the clients.
  timeoutMs: 60_000,
  // Long enough for a server that loads a large model.
  initTimeoutMs: 60_000,
  lookupIntervalMs: DEFAULT_LOOKUP_INTERVAL_MS,
} as const satisfies Required<Pick<RemoteOptions, Defaulted>>;

/** Smallest values of the numeric options, and whether they are integers. */
const NUMBERS: Readonly<Partial<Record<keyof RemoteOptions, { least: number; integer?: boolean }>>> = {
  concurrency: { least: 1, integer: true },
  retries: { least: 0, integer: true },
  hedgeAfterMs: { least: 0 },
  timeoutMs: { least: 1 },
  initTimeoutMs: { least: 0 },
  lookupIntervalMs: { least: 1 },
};

/** Options for which `Infinity` means never. */
const UNLIMITED: ReadonlySet<string> = new Set<keyof RemoteOptions>([
  "hedgeAfterMs",
  "timeoutMs",
  "initTimeoutMs",
]);

/**
 * Checks the options and adds the defaults.
 *
 * @throws TritonError INVALID_ARG that names the option, the expected and the given value.
 */
export function remoteSettings(options: RemoteOptions): RemoteSettings {
  assertOptions("remote()", options, REMOTE_OPTION_TYPES);
  const urls = listOf(options.urls);
  const { model } = options;
  if (typeof model !== "string" || model === "") throw invalid("model", "the name of a model", model);
  for (const [name, { least, integer }] of Object.entries(NUMBERS)) {
    const value = options[name as keyof RemoteOptions];
    if (value === undefined || (value === Number.POSITIVE_INFINITY && UNLIMITED.has(name))) continue;
    const isNumber = typeof value === "number" && value >= least && value <= LONGEST_TIMEOUT_MS;
    if (isNumber && (integer !== true || Number.isInteger(value))) continue;
    throw invalid(name, `${integer ? "an integer" : "a number"} of at least ${least}`, value);
  }
  for (const url of urls) protocolOf(url, options.protocol);
  return { ...REMOTE_DEFAULTS, ...(definedMembers(options) as RemoteOptions), urls };
}

/**
 * The protocol of an address.
 *
 * @throws TritonError INVALID_ARG for another scheme.
 */
export function protocolOf(url: string, protocol: RemoteProtocol = "grpc"): RemoteProtocol {
  if (protocol !== "grpc" && protocol !== "http") throw invalid("protocol", "'grpc' or 'http'", protocol);
  if (/^grpcs?:\/\//.test(url)) return "grpc";
  if (/^https?:\/\//.test(url)) return "http";
  if (!url.includes("://") || hostNameOf(url, 0) !== undefined) return protocol;
  throw invalid("urls", "an address that begins with grpc://, grpcs://, http://, https:// or dns://", url);
}

function invalid(option: string, expected: string, got: unknown): TritonError {
  return errorFor("INVALID_OPTION", `remote model, option ${option}: expected ${expected}, got '${got}'`);
}

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
  const { model, headers, accessToken, tls, version: modelVersion } = settings;
  const encrypted = definedMembers({ tls });
  const channelOptions = { ...CHANNEL, ...nameOptions(settings.urls, encrypted), ...settings.channelOptions };
  const client = new GrpcClient(url, {
    ...NO_RETRIES,
    ...definedMembers({ headers, accessToken }),
    ...encrypted,
    channelOptions,
  });
  return {
    ...callsOf(client, settings, async (call) => {
      const config = await client.getModelConfig(model, call);
      const { maxBatchSize, modelTransactionPolicy, sequenceBatching, input, output } = config;
      const decoupled = modelTransactionPolicy?.decoupled === true;
      return describeConfig(model, maxBatchSize, decoupled, sequenceBatching !== undefined, input, output);
    }),
    stream: async function* ({ headers: callHeaders, signal, timeoutMs = Infinity, ...request }) {
      const versioned = definedMembers({ modelVersion });
      const one = { ...request, ...versioned, modelName: model, enableEmptyFinalResponse: true };
      const options = { ...definedMembers({ headers: callHeaders, signal }), timeoutMs, endOnError: true };
      for await (const { result, error, final } of client.streamInfer([one], options)) {
        if (error !== undefined) throw error;
        if (!final || result.tensors.size > 0) yield result;
      }
    },
  };
}

function overHttp(url: string, settings: RemoteSettings): ReplicaClient {
  const { model, headers, accessToken, fetch } = settings;
  const client = new HttpClient(url, { ...NO_RETRIES, ...definedMembers({ headers, accessToken, fetch }) });
  const tensor = ({ data_type: dataType, ...rest }: ModelConfigTensor) => ({ ...rest, dataType });
  return {
    ...callsOf(client, settings, async (call) => {
      const config = await client.getModelConfig(model, call);
      const { max_batch_size, model_transaction_policy, sequence_batching, input, output } = config;
      const decoupled = model_transaction_policy?.decoupled === true;
      const sequences = sequence_batching !== undefined;
      const [inputs, outputs] = [input.map(tensor), output.map(tensor)];
      return describeConfig(model, Number(max_batch_size ?? 0), decoupled, sequences, inputs, outputs);
    }),
    stream: undefined,
  };
}

type VersionCall = CommonCallOptions & { readonly modelVersion?: string | number };

/** The calls that both protocols have. */
function callsOf(
  client: GrpcClient | HttpClient,
  { model, version: modelVersion }: RemoteSettings,
  describeByConfig: (call: VersionCall) => Promise<RemoteDescription>,
): Omit<ReplicaClient, "stream"> {
  const versioned = definedMembers({ modelVersion });
  return {
    infer: (call) => client.infer(model, { ...call, ...versioned }),
    isReady: (call) => client.isModelReady(model, { ...call, ...versioned }),
    describe: async (call) => {
      const described = await orMissing(describeByConfig({ ...call, ...versioned }));
      return described ?? describeMetadata(model, await client.getModelMetadata(model, call));
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

/** A model as its server describes it. */
export interface RemoteDescription extends ModelDescription {
  /** True if the server's model keeps a state for each sequence. */
  readonly sequences: boolean;
}

interface ConfigTensor {
  readonly name: string;
  readonly dataType: string;
  readonly dims: readonly number[];
  readonly optional?: boolean | undefined;
}

/**
 * The description of a model by its configuration.
 *
 * @throws TritonError INTERNAL for unknown data types.
 */
function describeConfig(
  modelName: string,
  maxBatchSize: number,
  decoupled: boolean,
  sequences: boolean,
  inputs: readonly ConfigTensor[],
  outputs: readonly ConfigTensor[],
): RemoteDescription {
  const described = ({ name, dataType, dims, optional }: ConfigTensor): DescribedTensor => ({
    name,
    dtype: knownType(modelName, name, fromConfigDataType(dataType), dataType),
    shape: dims.map(Number),
    ...(optional && { optional: true }),
  });
  const tensors = { inputs: inputs.map(described), outputs: outputs.map(described) };
  return { asInConfig: true, maxBatchSize, decoupled, sequences, ...tensors };
}

/**
 * The description of a model by its metadata, for servers that have no configurations. Shapes have all dimensions.
 *
 * @throws TritonError INTERNAL for unknown data types.
 */
function describeMetadata(modelName: string, { inputs, outputs }: ModelMetadata): RemoteDescription {
  const described = ({ name, datatype, shape }: ModelMetadata["inputs"][number]): DescribedTensor => ({
    name,
    dtype: knownType(modelName, name, isDataType(datatype) ? datatype : undefined, datatype),
    shape: shape.map(Number),
  });
  return { sequences: false, inputs: inputs.map(described), outputs: outputs.map(described) };
}

function knownType(model: string, tensor: string, datatype: DataType | undefined, got: string): DataType {
  if (datatype !== undefined) return datatype;
  const text = `tensor '${tensor}' of model '${model}': expected a known data type, got '${got}'`;
  throw errorFor("INVALID_ANSWER", text);
}
