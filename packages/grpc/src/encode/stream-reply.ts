import type { InferenceResponse, ReadyModel } from "@tritonjs/core/frontend";
import type { inference } from "@tritonjs/grpc-messages";
import { TritonError } from "@tritonjs/protocol";
import type { DecodedMessage } from "../decode/infer-request.js";
import { encodeInferResponse } from "./infer-response.js";

type Request = inference.ModelInferRequest;
type StreamMessage = inference.ModelStreamInferResponse.$Properties;

const FINAL_RESPONSE = "triton_final_response";

/** What a stream tells of a response or an error. */
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

/** What a stream tells of the end of a request that came without a response. */
export function encodeEmptyFinal(request: Request): StreamMessage {
  return { inferResponse: bareResponse(request, true) };
}

/** What a stream tells of a request that was refused: its id, so that the client knows which one. */
export function encodeRefusal(request: Request, error: TritonError): StreamMessage {
  return { errorMessage: error.message, inferResponse: { id: request.id } };
}

/** An error that comes as a response; one without a text is an empty response. */
function failedResponse(request: Request, error: TritonError, final: boolean): StreamMessage {
  return { errorMessage: error.message, inferResponse: bareResponse(request, final) };
}

/** A response without outputs; its version is the one that the client wrote. */
function bareResponse(request: Request, final: boolean): inference.ModelInferResponse.$Properties {
  const { id, modelName, modelVersion } = request;
  return { id, modelName, modelVersion, parameters: { [FINAL_RESPONSE]: { boolParam: final } } };
}
