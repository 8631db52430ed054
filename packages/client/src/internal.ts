/*
 * `@tritonjs/client/internal`: what the other packages of tritonjs use of the client. It may change in any release.
 */

export { failureOfError } from "./caller.js";
export { nameOptions } from "./grpc/client-options.js";
export { decodeInferResponse, type EncodedInferRequest, encodeInferRequest } from "./http/infer-messages.js";
export type { ModelConfigTensor } from "./http/server-answers.js";
export type { RequestOptions } from "./infer-request.js";
export type { InferResult } from "./infer-result.js";
export type { CommonCallOptions, Compression, Lookup } from "./options.js";
export { DEFAULT_LOOKUP_INTERVAL_MS, hostNameOf, listOf, ServerAddresses } from "./server-addresses.js";
export { nextPause } from "./several-servers.js";
