import type { TensorInput } from "@tritonjs/protocol";
import type { Compression } from "../../options/client-options.js";
import type { CommonOutputRequest, InferInput, RequestOptions } from "../../options/infer-options.js";
import type { ModelCallOptions } from "../client-options.js";

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
  /** Sends tensors as bytes; `false` sends JSON, which has no form for FP16 and BF16. @default that of the client */
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
