import { type InferenceResponse, TritonError } from "@tritonjs/core";
import type { inference } from "@tritonjs/grpc-messages";
import { encodeInferResponse, type OutputFilter } from "./infer-response.js";

type Request = inference.ModelInferRequest;
type StreamMessage = inference.ModelStreamInferResponse.$Properties;

/** How the responses to a request are sent on a stream. */
export interface StreamReplyOptions {
  readonly filter: OutputFilter;
  /** Whether an end without a response is told by an empty one. */
  readonly emptyFinal: boolean;
}

const FINAL_RESPONSE = "triton_final_response";

/** What a stream tells of a response, an error or the bare end of a request; undefined for nothing. */
export function encodeStreamReply(
  request: Request,
  outcome: InferenceResponse | TritonError | undefined,
  final: boolean,
  { filter, emptyFinal }: StreamReplyOptions,
): StreamMessage | undefined {
  if (outcome === undefined) return emptyFinal ? { inferResponse: bareResponse(request, final) } : undefined;
  if (TritonError.is(outcome)) return failedResponse(request, outcome, final);
  try {
    const inferResponse = encodeInferResponse(outcome, filter);
    inferResponse.parameters![FINAL_RESPONSE] = { boolParam: final };
    return { inferResponse };
  } catch (error) {
    return failedResponse(request, TritonError.from(error), final);
  }
}

/** What a stream tells of a request that was refused: its id, so that the client knows which one. */
export function encodeRefusal(request: Request, error: TritonError): StreamMessage {
  return { errorMessage: error.message, inferResponse: { id: request.id } };
}

/** An error that comes as a response; one without a text is an empty response. */
export function failedResponse(request: Request, error: TritonError, final: boolean): StreamMessage {
  return { errorMessage: error.message, inferResponse: bareResponse(request, final) };
}

/** A response without outputs; its version is the one that the client wrote. */
function bareResponse(request: Request, final: boolean): inference.ModelInferResponse.$Properties {
  const { id, modelName, modelVersion } = request;
  return { id, modelName, modelVersion, parameters: { [FINAL_RESPONSE]: { boolParam: final } } };
}
