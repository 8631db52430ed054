import { type RequestOptions, request } from "node:https";
import { InferenceServerClient as GrpcClient } from "@tritonjs/client/grpc";
import { type Fetch, InferenceServerClient as HttpClient } from "@tritonjs/client/http";
import {
  type DataType,
  fromConfigDataType,
  isDataType,
  type ModelConfig,
  type ModelMetadata,
  type ModelStatisticsReport,
  TritonError,
} from "@tritonjs/protocol";
import { serviceOf } from "@tritonjs/server";
import { invalidOption } from "../command/tool-errors.js";
import type { TestedModel } from "../data/data-set.js";
import {
  authorityOf,
  endpointOf,
  type GrpcTargetOptions,
  type HttpTargetOptions,
  type OpenAiTargetOptions,
  type TargetOptions,
  type TlsSettings,
} from "./target-options.js";

type Awaitable<T> = T | Promise<T>;

/** The calls that ask a server about its models. All answer with the library's own types. */
export interface ServerCalls {
  /** Protocol extensions of the server. */
  extensions(): Awaitable<readonly string[]>;
  modelConfig(name: string, version: string): Awaitable<ModelConfig>;
  modelMetadata(name: string, version: string): Awaitable<ModelMetadata>;
  statistics(name: string, version: string): Awaitable<readonly ModelStatisticsReport[]>;
  close(): void;
}

/** Opens the calls of a target's server, beside the load. Close them after use; a `Triton` stays open. */
export function serverCallsOf(target: Exclude<TargetOptions, OpenAiTargetOptions>): ServerCalls {
  if (target.kind === "in-process") {
    const service = serviceOf(target.source.triton);
    return {
      extensions: () => service.serverMetadata().extensions,
      modelConfig: (name, version) => service.modelConfig(name, version),
      modelMetadata: (name, version) => service.modelMetadata(name, version),
      statistics: (name, version) => service.statistics(name, version),
      close: () => {},
    };
  }
  if (target.kind === "grpc") {
    const client = grpcClientOf(target);
    return {
      extensions: async () => (await client.getServerMetadata()).extensions,
      modelConfig: (name, modelVersion) => client.getModelConfig(name, { modelVersion }),
      modelMetadata: (name, modelVersion) => client.getModelMetadata(name, { modelVersion }),
      statistics: (name, modelVersion) => client.getInferenceStatistics(name, { modelVersion }),
      close: () => client.close(),
    };
  }
  const client = httpClientOf(target);
  const of = (version: string) => (version === "" ? {} : { modelVersion: version });
  return {
    extensions: async () => (await client.getServerMetadata()).extensions ?? [],
    modelConfig: async (name, version) => camelCased(await client.getModelConfig(name, of(version))),
    modelMetadata: async (name, version) => camelCased(await client.getModelMetadata(name, of(version))),
    statistics: async (name, version) =>
      camelCased((await client.getInferenceStatistics(name, of(version))).model_stats),
    close: () => client.close(),
  };
}

/** The JSON of an answer with the names of the library's own types. */
function camelCased<T>(value: unknown): T {
  if (typeof value !== "object" || value === null) return value as T;
  if (Array.isArray(value)) return value.map(camelCased) as T;
  const entries = Object.entries(value).map(([key, member]) => [
    key.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase()),
    camelCased(member),
  ]);
  return Object.fromEntries(entries) as T;
}

/**
 * Asks the server for the properties of a model. Servers without Triton's model configuration are asked for the
 * metadata of the v2 protocol.
 *
 * @throws TritonError NOT_FOUND for an unknown model, UNAVAILABLE for a server that cannot be reached.
 */
export async function readModel(target: Exclude<TargetOptions, OpenAiTargetOptions>): Promise<TestedModel> {
  const { modelName: name, modelVersion: version = "" } = target;
  const calls = serverCallsOf(target);
  try {
    return { name, version, ...fromConfig(name, await calls.modelConfig(name, version)) };
  } catch (cause) {
    // Servers without the operation answer with all kinds of texts, also with ones that name the path and thus
    // "models". A server that knows the model has metadata of it.
    if (!isUnknownToServer(cause)) throw cause;
    let metadata: ModelMetadata;
    try {
      metadata = await calls.modelMetadata(name, version);
    } catch {
      throw cause;
    }
    return { name, version, ...fromMetadata(name, metadata) };
  } finally {
    calls.close();
  }
}

type ReadProperties = Omit<TestedModel, "name" | "version">;

/** Answers in JSON may lack members. */
function fromConfig(model: string, config: ModelConfig): ReadProperties {
  return {
    maxBatchSize: config.maxBatchSize,
    decoupled: config.modelTransactionPolicy?.decoupled ?? false,
    isSequenceModel: config.sequenceBatching != null,
    inputs: config.input.map(({ name, dataType, dims, optional = false, isShapeTensor = false }) => ({
      name,
      dims: dims.map(Number),
      optional,
      isShapeTensor,
      datatype: datatypeOf(model, name, dataType),
    })),
    outputs: config.output.map(({ name, dataType }) => ({
      name,
      datatype: datatypeOf(model, name, dataType),
    })),
    composingModels: (config.ensembleScheduling?.step ?? []).map(({ modelName }) => modelName),
  };
}

/** Without a configuration, a variable first dimension of all inputs is the batch axis. */
function fromMetadata(model: string, { inputs, outputs }: ModelMetadata): ReadProperties {
  const isBatched = inputs.length > 0 && inputs.every(({ shape }) => Number(shape[0]) === -1);
  return {
    maxBatchSize: isBatched ? Number.MAX_SAFE_INTEGER : 0,
    decoupled: false,
    isSequenceModel: false,
    inputs: inputs.map(({ name, datatype, shape }) => ({
      name,
      dims: shape.slice(isBatched ? 1 : 0).map(Number),
      optional: false,
      isShapeTensor: false,
      datatype: datatypeOf(model, name, datatype),
    })),
    outputs: outputs.map(({ name, datatype }) => ({ name, datatype: datatypeOf(model, name, datatype) })),
    composingModels: [],
    isFromMetadata: true,
  };
}

/** Whether a server lacks the operation that it was asked for, or does not know the model. */
export function isUnknownToServer(error: unknown): boolean {
  return TritonError.is(error) && (error.code === "NOT_FOUND" || error.code === "UNSUPPORTED");
}

function datatypeOf(model: string, tensor: string, text: string): DataType {
  const datatype = fromConfigDataType(text) ?? text;
  if (isDataType(datatype)) return datatype;
  throw invalidOption(
    `model '${model}': tensor '${tensor}': expected a data type of the v2 protocol, got '${text}'`,
  );
}

export function httpClientOf({ url, headers, tls }: HttpTargetOptions): HttpClient {
  const endpoint = httpEndpoint({ url, tls });
  const scheme = endpoint.tls === undefined ? "http" : "https";
  const fetch = tls === undefined ? undefined : tlsFetch(tls);
  return new HttpClient(`${scheme}://${authorityOf(endpoint)}${endpoint.basePath}`, { headers, fetch });
}

export function grpcClientOf({ url, headers, tls }: GrpcTargetOptions): GrpcClient {
  const endpoint = grpcEndpoint({ url, tls });
  const { ca, cert, key } = tls ?? {};
  const secure = endpoint.tls === undefined ? false : tls === undefined ? true : { ca, cert, key };
  return new GrpcClient(authorityOf(endpoint), { headers, tls: secure });
}

export const httpEndpoint = ({ url, tls }: Pick<HttpTargetOptions, "url" | "tls">) =>
  endpointOf(url, { defaultPort: 8000, schemes: ["http", "https"], tls });

export const grpcEndpoint = ({ url, tls }: Pick<GrpcTargetOptions, "url" | "tls">) =>
  endpointOf(url, { defaultPort: 8001, schemes: ["grpc", "grpcs", "http", "https"], tls });

/** `fetch` for addresses with `https:`, with TLS settings that the global one does not take. */
function tlsFetch({ ca, cert, key, acceptAny = false }: TlsSettings): Fetch {
  return (url, { method, headers, body, signal }) =>
    new Promise((resolve, reject) => {
      const options: RequestOptions = {
        method,
        headers: Object.fromEntries(new Headers(headers as Record<string, string>)),
        signal: signal ?? undefined,
        ca,
        cert,
        key,
        rejectUnauthorized: !acceptAny,
      };
      const sent = request(url, options, (answer) => {
        const chunks: Buffer[] = [];
        answer.on("data", (chunk: Buffer) => chunks.push(chunk));
        answer.once("error", reject);
        answer.once("end", () => {
          const received = new Headers();
          for (const [name, value] of Object.entries(answer.headers))
            if (value !== undefined) received.set(name, String(value));
          const status = answer.statusCode ?? 0;
          const hasBody = status !== 204 && status !== 304;
          resolve(new Response(hasBody ? Buffer.concat(chunks) : null, { status, headers: received }));
        });
      });
      sent.once("error", (cause) => reject(new TypeError("fetch failed", { cause })));
      sent.end(body as Uint8Array | string | undefined);
    });
}
