import {
  InferenceRequest,
  type Parameters,
  type RequestRegions,
  type RequestTrace,
  type ResponseHandler,
} from "@tritonjs/core";
import type { inference } from "@tritonjs/grpc-messages";
import { decodeInputs } from "./infer-inputs.js";
import { decodeInferParameters } from "./infer-parameters.js";
import { decodeOutputForms, type OutputForms, requestedOutputNames } from "./requested-outputs.js";

/** A request, and what its message says about how to answer. */
export interface DecodedRequest {
  readonly request: InferenceRequest;
  readonly outputs: OutputForms;
  readonly enableEmptyFinalResponse: boolean;
}

/**
 * Makes the inference request of a message.
 *
 * @param forwarded Parameters made of headers.
 * @param trace Set for a request that is traced.
 * @param regions Holds the shared memory that the message names, until the caller releases it.
 * @throws TritonError INVALID_ARG, NOT_FOUND or UNSUPPORTED for the first fault found.
 */
export function decodeInferRequest(
  message: inference.ModelInferRequest,
  forwarded: Parameters,
  regions: RequestRegions,
  onResponse: ResponseHandler,
  trace?: RequestTrace,
): DecodedRequest {
  const decoded = decodeInferParameters(message.parameters, forwarded);
  const logPrefix = `[request id: ${message.id || "<id_unknown>"}] `;
  const inputs = decodeInputs(message, logPrefix, regions);
  const outputs = decodeOutputForms(message.outputs, regions);
  // One by one: a spread looks each property up at run time, which takes longer than all else here.
  const request = new InferenceRequest({
    parameters: decoded.parameters,
    correlationId: decoded.correlationId,
    sequenceStart: decoded.sequenceStart,
    sequenceEnd: decoded.sequenceEnd,
    priority: decoded.priority,
    queueTimeoutMicroseconds: decoded.queueTimeoutMicroseconds,
    modelName: message.modelName,
    modelVersion: message.modelVersion,
    id: message.id,
    inputs,
    requestedOutputs: requestedOutputNames(message.outputs),
    trace,
    onResponse,
  });
  return { request, outputs, enableEmptyFinalResponse: decoded.enableEmptyFinalResponse };
}
