import { InferenceRequest, type Parameters, type ResponseHandler } from "@tritonjs/core";
import type { inference } from "#proto";
import { decodeInputs } from "./infer-inputs.js";
import { decodeInferParameters } from "./infer-parameters.js";
import { type Classifications, decodeClassifications, requestedOutputNames } from "./requested-outputs.js";

/** A request, and what its message says about how to answer. */
export interface DecodedRequest {
  readonly request: InferenceRequest;
  readonly classifications: Classifications;
  readonly enableEmptyFinalResponse: boolean;
}

/**
 * Makes the inference request of a message.
 *
 * @param forwarded Parameters made of headers.
 * @throws TritonError INVALID_ARG, NOT_FOUND or UNSUPPORTED for the first fault found.
 */
export function decodeInferRequest(
  message: inference.ModelInferRequest,
  forwarded: Parameters,
  onResponse: ResponseHandler,
): DecodedRequest {
  const { enableEmptyFinalResponse, ...parameters } = decodeInferParameters(message.parameters, forwarded);
  const logPrefix = `[request id: ${message.id || "<id_unknown>"}] `;
  const inputs = decodeInputs(message, logPrefix);
  const classifications = decodeClassifications(message.outputs);
  const request = new InferenceRequest({
    ...parameters,
    modelName: message.modelName,
    modelVersion: message.modelVersion,
    id: message.id,
    inputs,
    requestedOutputs: requestedOutputNames(message.outputs),
    onResponse,
  });
  return { request, classifications, enableEmptyFinalResponse };
}
