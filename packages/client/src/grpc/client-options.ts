import type { ChannelOptions } from "@grpc/grpc-js";
import { INFER_OPTION_TYPES, optionTypes } from "@tritonjs/protocol";
import type { CommonOutputRequest, InferInput, RequestOptions } from "../infer-request.js";
import {
  CALL_OPTION_TYPES,
  CLIENT_OPTION_TYPES,
  type CommonCallOptions,
  type CommonClientOptions,
  type Compression,
  INFER_CALL_OPTION_TYPES,
  type VersionOption,
} from "../options.js";
import { hostNameOf, listOf } from "../server-addresses.js";

/** Certificates in PEM. */
type Pem = string | Buffer;

/** Certificates of an encrypted connection. */
interface ClientTlsOptions {
  /** Certificate authorities that are trusted to sign the server's certificate. @default those of Node.js */
  readonly ca?: Pem;
  /** The client's own certificate, for servers that require one (mutual TLS). */
  readonly cert?: Pem;
  /** The private key of `cert`. */
  readonly key?: Pem;
}

/** Options of a client, for all calls that do not override them. Headers are sent as metadata. */
export interface ClientOptions extends CommonClientOptions {
  /** The access token of the server, sent as `triton-grpc-protocol-triton-access-token`. */
  readonly accessToken?: string;
  /** Encrypts the connection. @default false, unless the url begins with `grpcs://` */
  readonly tls?: boolean | ClientTlsOptions;
  /** Options of grpc-js' channel: keepalive, windows, sizes. They override the client's own choices. */
  readonly channelOptions?: ChannelOptions;
  /** Compresses inference requests. @default no compression */
  readonly requestCompression?: Compression;
}

/** Port of an address that names none. */
export const DEFAULT_GRPC_PORT = 8001;

/** With TLS, the certificate names the host, not the addresses that were found for it. */
export function nameOptions(
  urls: string | readonly string[],
  { tls }: Pick<ClientOptions, "tls">,
): Readonly<Record<string, string>> {
  const [first] = listOf(urls);
  const name = tls ? hostNameOf(first!, DEFAULT_GRPC_PORT)?.hostname : undefined;
  return name === undefined ? {} : { "grpc.ssl_target_name_override": name, "grpc.default_authority": name };
}

/** Options of every call. */
export type CallOptions = CommonCallOptions;

/** Options of calls about one model. */
export interface ModelCallOptions extends CallOptions, VersionOption {}

/** PyTriton's metadata for the access token. */
export const ACCESS_TOKEN_HEADER = "triton-grpc-protocol-triton-access-token";

/** A requested output. */
export interface OutputRequest extends CommonOutputRequest {}

/** Options of one request, apart from its tensors. */
export interface InferRequestOptions extends ModelCallOptions, RequestOptions {
  /** @default that of the client */
  readonly requestCompression?: Compression;
}

/** An inference: its inputs by name, the requested outputs, and options. */
export interface InferCall extends InferRequestOptions {
  readonly inputs: Readonly<Record<string, InferInput>>;
  /** @default all outputs */
  readonly outputs?: readonly (string | OutputRequest)[];
}

/** An inference on a stream. */
export interface StreamInferRequest extends Omit<InferCall, keyof CallOptions | "requestCompression"> {
  readonly modelName: string;
  /** Asks for a message at the end of a request to a decoupled model even if no response marks it. */
  readonly enableEmptyFinalResponse?: boolean;
}

/** The types of the options of a client. */
export const CLIENT_TYPES = optionTypes<ClientOptions>({
  ...CLIENT_OPTION_TYPES,
  tls: ["boolean", "object"],
  channelOptions: "object",
  requestCompression: "string",
});

/** The types of the options of an inference with one model. */
export const INFER_TYPES = optionTypes<Omit<InferRequestOptions, "modelVersion">>(INFER_CALL_OPTION_TYPES);

/** The types of the parts of an inference. Other code words the errors about its inputs. */
export const INFER_CALL_TYPES = optionTypes<InferCall>({
  ...INFER_CALL_OPTION_TYPES,
  modelVersion: CALL_OPTION_TYPES.modelVersion,
  inputs: "any",
  outputs: "array",
});

const { signal: _s, timeoutMs: _t, ...REQUEST_TYPES } = INFER_OPTION_TYPES;

/** The types of the parts of an inference on a stream. */
export const STREAM_REQUEST_TYPES = optionTypes<StreamInferRequest>({
  ...REQUEST_TYPES,
  modelName: "string",
  modelVersion: CALL_OPTION_TYPES.modelVersion,
  inputs: "any",
  outputs: "array",
  enableEmptyFinalResponse: "boolean",
});
