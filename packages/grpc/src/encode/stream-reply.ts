import type { InferenceResponse, ReadyModel } from "@tritonjs/core/frontend";
import type { inference } from "@tritonjs/grpc-messages";
import { TritonError } from "@tritonjs/protocol";
import type { DecodedMessage } from "../decode/infer-request.js";
import { encodeInferResponse } from "./infer-response.js";
import { FINAL_RESPONSE } from "./infer-response-parts.js";

type Request = inference.ModelInferRequest;
type StreamMessage = inference.ModelStreamInferResponse.$Properties;

/** Encodes a response or an error as a message of a stream. */
export function encodeStreamReply(
  request: Request,
  model: ReadyModel,
  { outputs }: DecodedMessage,
  outcome: InferenceResponse | TritonError,
  final: boolean,
): StreamMessage {
  if (TritonError.is(outcome)) return failedResponse(request, outcome, final);
  try {
    const inferResponse = encodeInferResponse(model, outcome, outputs);
    inferResponse.parameters![FINAL_RESPONSE] = { boolParam: final };
    return { inferResponse };
  } catch (error) {
    return failedResponse(request, TritonError.from(error), final);
  }
}

/** Encodes the end of a request that came without a response. */
export function encodeEmptyFinal(request: Request): StreamMessage {
  return { inferResponse: bareResponse(request, true) };
}

/** Encodes the error of a rejected request, with its id, so that the client can tell which request it was. */
export function encodeRefusal(request: Request, error: TritonError): StreamMessage {
  return { errorMessage: error.message, inferResponse: { id: request.id } };
}

/** Encodes an error that came as a response; an error without a text is an empty response. */
function failedResponse(request: Request, error: TritonError, final: boolean): StreamMessage {
  return { errorMessage: error.message, inferResponse: bareResponse(request, final) };
}

/** A response without outputs. Its version is the one in the client's request. */
function bareResponse(request: Request, final: boolean): inference.ModelInferResponse.$Properties {
  const { id, modelName, modelVersion } = request;
  return { id, modelName, modelVersion, parameters: { [FINAL_RESPONSE]: { boolParam: final } } };
}
