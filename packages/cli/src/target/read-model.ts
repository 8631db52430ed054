import { type RequestOptions, request } from "node:https";
import { InferenceServerClient as GrpcClient } from "@tritonjs/client/grpc";
import { type Fetch, InferenceServerClient as HttpClient } from "@tritonjs/client/http";
import { type DataType, fromConfigDataType, isDataType, TritonError } from "@tritonjs/protocol";
import type { TestedModel } from "../data/data-set.js";
import { invalidOption } from "../tool-errors.js";
import {
  authorityOf,
  endpointOf,
  type GrpcTargetOptions,
  type HttpTargetOptions,
  type InProcessTargetOptions,
  type OpenAiTargetOptions,
  type TargetOptions,
  type TlsSettings,
} from "./target-options.js";

/** The members of a configuration that are read, in the form of all servers. */
interface ReadConfig {
  readonly maxBatchSize: number;
  readonly decoupled: boolean;
  readonly isSequenceModel: boolean;
  readonly inputs: readonly ReadInput[];
  readonly outputs: readonly { readonly name: string; readonly dataType: string }[];
  readonly composingModels: readonly string[];
  readonly isFromMetadata?: boolean;
}

interface ReadInput {
  readonly name: string;
  readonly dataType: string;
  readonly dims: readonly number[];
  readonly optional: boolean;
  readonly isShapeTensor: boolean;
}

/**
 * Asks the server for the properties of a model. Servers without Triton's model configuration are asked for the
 * metadata of the v2 protocol.
 *
 * @throws TritonError NOT_FOUND for an unknown model, UNAVAILABLE for a server that cannot be reached.
 */
export async function readModel(target: Exclude<TargetOptions, OpenAiTargetOptions>): Promise<TestedModel> {
  const { modelName: name, modelVersion: version = "" } = target;
  const config =
    target.kind === "http"
      ? await readOverHttp(target)
      : target.kind === "grpc"
        ? await readOverGrpc(target)
        : readInProcess(target);
  return {
    name,
    version,
    maxBatchSize: config.maxBatchSize,
    decoupled: config.decoupled,
    isSequenceModel: config.isSequenceModel,
    inputs: config.inputs.map(({ dataType, ...input }) => ({
      ...input,
      datatype: datatypeOf(name, input.name, dataType),
    })),
    outputs: config.outputs.map((output) => ({
      name: output.name,
      datatype: datatypeOf(name, output.name, output.dataType),
    })),
    composingModels: config.composingModels,
    ...(config.isFromMetadata && { isFromMetadata: true }),
  };
}

async function readOverHttp(target: HttpTargetOptions): Promise<ReadConfig> {
  const { modelName, modelVersion } = target;
  const client = httpClientOf(target);
  try {
    const config = await client.getModelConfig(modelName, { modelVersion });
    const ensemble = config.ensemble_scheduling as { step?: { model_name: string }[] } | undefined;
    return {
      maxBatchSize: config.max_batch_size,
      decoupled: config.model_transaction_policy?.decoupled ?? false,
      isSequenceModel: config.sequence_batching !== undefined,
      inputs: config.input.map((input) => ({
        name: input.name,
        dataType: input.data_type,
        dims: input.dims.map(Number),
        optional: input.optional ?? false,
        isShapeTensor: input.is_shape_tensor === true,
      })),
      outputs: config.output.map((output) => ({ name: output.name, dataType: output.data_type })),
      composingModels: (ensemble?.step ?? []).map((step) => step.model_name),
    };
  } catch (cause) {
    return await withoutConfig(cause, () => client.getModelMetadata(modelName, { modelVersion }));
  } finally {
    client.close();
  }
}

async function readOverGrpc(target: GrpcTargetOptions): Promise<ReadConfig> {
  const { modelName, modelVersion } = target;
  const client = grpcClientOf(target);
  try {
    return fromConfig(await client.getModelConfig(modelName, { modelVersion }));
  } catch (cause) {
    return await withoutConfig(cause, () => client.getModelMetadata(modelName, { modelVersion }));
  } finally {
    client.close();
  }
}

function readInProcess({
  source: { triton },
  modelName,
  modelVersion = "",
}: InProcessTargetOptions): ReadConfig {
  return fromConfig(triton.service.modelConfig(modelName, modelVersion));
}

type Config = Awaited<ReturnType<ReturnType<typeof grpcClientOf>["getModelConfig"]>>;
type Metadata = Awaited<ReturnType<ReturnType<typeof grpcClientOf>["getModelMetadata"]>>;

function fromConfig(config: Config): ReadConfig {
  return {
    maxBatchSize: config.maxBatchSize,
    decoupled: config.modelTransactionPolicy?.decoupled ?? false,
    isSequenceModel: config.sequenceBatching != null,
    inputs: config.input.map((input) => ({ ...pick(input), dims: input.dims.map(Number) })),
    outputs: config.output.map(({ name, dataType }) => ({ name, dataType })),
    composingModels: (config.ensembleScheduling?.step ?? []).map(({ modelName }) => modelName),
  };
}

const pick = ({ name, dataType, optional, isShapeTensor }: Omit<ReadInput, "dims">) => ({
  name,
  dataType,
  optional,
  isShapeTensor,
});

/** Without a configuration, a variable first dimension of all inputs is the batch axis. */
function fromMetadata({ inputs, outputs }: Metadata): ReadConfig {
  const isBatched = inputs.length > 0 && inputs.every(({ shape }) => Number(shape[0]) === -1);
  return {
    maxBatchSize: isBatched ? Number.MAX_SAFE_INTEGER : 0,
    decoupled: false,
    isSequenceModel: false,
    inputs: inputs.map(({ name, datatype, shape }) => ({
      name,
      dataType: datatype,
      dims: shape.slice(isBatched ? 1 : 0).map(Number),
      optional: false,
      isShapeTensor: false,
    })),
    outputs: outputs.map(({ name, datatype }) => ({ name, dataType: datatype })),
    composingModels: [],
    isFromMetadata: true,
  };
}

/**
 * Servers without the operation answer with all kinds of texts, also with ones that name the path and thus "models". A
 * server that knows the model has metadata of it.
 *
 * @throws the cause where there is no metadata either
 */
async function withoutConfig(cause: unknown, readMetadata: () => Promise<Metadata>): Promise<ReadConfig> {
  if (!isUnknownToServer(cause)) throw cause;
  let metadata: Metadata;
  try {
    metadata = await readMetadata();
  } catch {
    throw cause;
  }
  return fromMetadata(metadata);
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

/** Asks the server of a target about its models, beside the load. Close it after use. */
export function httpClientOf({ url, headers, tls }: HttpTargetOptions): HttpClient {
  const endpoint = httpEndpoint({ url, tls });
  const scheme = endpoint.tls === undefined ? "http" : "https";
  const fetch = tls === undefined ? undefined : tlsFetch(tls);
  return new HttpClient(`${scheme}://${authorityOf(endpoint)}${endpoint.basePath}`, { headers, fetch });
}

/** As {@link httpClientOf}, over gRPC. */
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
