import type { Compression } from "../../options/client-options.js";
import type { CommonOutputRequest, InferInput, RequestOptions } from "../../options/infer-options.js";
import type { CallOptions, ModelCallOptions } from "../client-options.js";

/** An output that is asked for. */
export interface OutputRequest extends CommonOutputRequest {}

/** What can be said about one request, apart from its tensors. */
export interface InferRequestOptions extends ModelCallOptions, RequestOptions {
  /** @default that of the client */
  readonly requestCompression?: Compression;
}

/** An inference: its inputs by name, the outputs it asks for, and options. */
export interface InferCall extends InferRequestOptions {
  readonly inputs: Readonly<Record<string, InferInput>>;
  /** @default all outputs */
  readonly outputs?: readonly (string | OutputRequest)[];
}

/** An inference on a stream. */
export interface StreamInferRequest extends Omit<InferCall, keyof CallOptions | "requestCompression"> {
  readonly modelName: string;
  /** Asks to be told of the end of a request to a decoupled model also when no response carries it. */
  readonly enableEmptyFinalResponse?: boolean;
}
