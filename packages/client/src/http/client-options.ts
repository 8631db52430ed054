import type { TensorInput } from "@tritonjs/protocol";
import type { CommonOutputRequest, InferInput, RequestOptions } from "../infer-request.js";
import type { CommonCallOptions, CommonClientOptions, Compression, VersionOption } from "../options.js";

/** The part of `fetch` that the client uses. */
export type Fetch = (url: string, init: RequestInit) => Promise<Response>;

/** Options of a client, for all calls that do not override them. */
export interface ClientOptions extends CommonClientOptions {
  /** The access token of the server, sent as the header `triton-access-token`. */
  readonly accessToken?: string;
  /** Sends the requests, and manages the connections. @default the global `fetch` */
  readonly fetch?: Fetch;
  /** Compresses the bodies of infer requests. @default no compression */
  readonly requestCompression?: Compression;
  /** Asks for compressed answers to infer requests. @default no compression */
  readonly responseCompression?: Compression;
  /** Sends tensors of infer requests as bytes; `false` sends JSON. @default true */
  readonly binary?: boolean;
}

/** Options of every call. The server notices a cancelled call by its closed connection. */
export interface CallOptions extends CommonCallOptions {
  /** Query of this request. */
  readonly query?: Readonly<Record<string, string>>;
}

/** Options of calls about one model. */
export interface ModelCallOptions extends CallOptions, VersionOption {}

/** PyTriton's header for the access token. */
export const ACCESS_TOKEN_HEADER = "triton-access-token";

/** An input with its data type and shape. */
export interface HttpTensorInput extends TensorInput {
  /** `false` sends this input as JSON. @default that of the call */
  readonly binary?: boolean;
}

/** An input in any form: described, or just an ndarray, a typed array or nested arrays. */
export type HttpInferInput = InferInput<HttpTensorInput>;

/** A requested output. */
export interface OutputRequest extends CommonOutputRequest {
  /** `false` asks for JSON. @default that of the call */
  readonly binary?: boolean;
}

/** Options of one request, apart from its tensors. */
export interface InferRequestOptions extends ModelCallOptions, RequestOptions {
  /** Sends tensors as bytes; `false` sends JSON, which has no form for 16-bit floats. @default that of the client */
  readonly binary?: boolean;
  /** @default that of the client */
  readonly requestCompression?: Compression;
  /** @default that of the client */
  readonly responseCompression?: Compression;
}

/** An inference: its inputs by name, the requested outputs, and options. */
export interface InferCall extends InferRequestOptions {
  readonly inputs: Readonly<Record<string, HttpInferInput>>;
  /** @default all outputs */
  readonly outputs?: readonly (string | OutputRequest)[];
}
