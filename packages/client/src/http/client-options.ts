import { optionTypes, type TensorInput } from "@tritonjs/protocol";
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
interface HttpTensorInput extends TensorInput {
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

const BODY_TYPES = {
  requestCompression: "string",
  responseCompression: "string",
  binary: "boolean",
} as const;

/** The types of the options of a client. */
export const CLIENT_TYPES = optionTypes<ClientOptions>({
  ...CLIENT_OPTION_TYPES,
  ...BODY_TYPES,
  fetch: "function",
});

/** The types of the options of calls other than inferences. */
export const CALL_TYPES = { ...CALL_OPTION_TYPES, query: "object" } as const;

const INFER_OPTIONS = { ...INFER_CALL_OPTION_TYPES, ...BODY_TYPES, query: "object" } as const;

/** The types of the options of an inference with one model. */
export const INFER_TYPES = optionTypes<Omit<InferRequestOptions, "modelVersion">>(INFER_OPTIONS);

/** The types of the parts of an inference. Other code words the errors about its inputs. */
export const INFER_CALL_TYPES = optionTypes<InferCall>({
  ...INFER_OPTIONS,
  modelVersion: CALL_TYPES.modelVersion,
  inputs: "any",
  outputs: "array",
});
