import type { ClientOptions } from "../client-options.js";
import type { ModelOptions } from "../core.js";
import type { InferRequestOptions } from "../infer/infer-options.js";

/** Options of a client of one model. */
export interface ModelClientOptions extends Omit<ClientOptions, "timeoutMs">, ModelOptions {}

/** Options of an inference with one model. */
export type ModelInferOptions = Omit<InferRequestOptions, "modelVersion">;
