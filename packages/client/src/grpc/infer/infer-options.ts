import type { Compression } from "../../options/client-options.js";
import type { CommonOutputRequest, InferInput, RequestOptions } from "../../options/infer-options.js";
import type { CallOptions, ModelCallOptions } from "../client-options.js";

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
