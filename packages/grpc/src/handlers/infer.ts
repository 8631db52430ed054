import {
  type InferenceResponse,
  type InferenceService,
  isDecoupled,
  type ReadyModel,
  TritonError,
} from "@tritonjs/core";
import { inference } from "#proto";
import { decodeInferRequest } from "../decode/infer-request.js";
import type { Classifications } from "../decode/requested-outputs.js";
import { encodeInferResponse } from "../encode/infer-response.js";
import { encodeInferResponseParts } from "../encode/infer-response-parts.js";
import type { Call } from "../transport/call.js";
import { type Method, unary } from "../transport/method.js";
import { classifyOutputs } from "./classify-outputs.js";
import type { HeaderForwarding } from "./forward-headers.js";
import { inferencePath } from "./paths.js";
import type { Shutdown } from "./shutdown.js";

type InferMessage = inference.ModelInferResponse.$Properties;

/** `ModelInfer`. */
export function inferMethods(
  service: InferenceService,
  forwardHeaders: HeaderForwarding,
  shutdown: Shutdown,
): Method[] {
  return [
    unary(
      {
        path: inferencePath("ModelInfer"),
        protocol: "inference",
        request: inference.ModelInferRequest,
        response: { encodeParts: encodeInferResponseParts },
      },
      (message, call) => {
        shutdown.refuseIfBegun();
        return modelInfer(service, forwardHeaders, shutdown, message, call);
      },
    ),
  ];
}

function modelInfer(
  service: InferenceService,
  forwardHeaders: HeaderForwarding,
  shutdown: Shutdown,
  message: inference.ModelInferRequest,
  call: Call,
): Promise<InferMessage> {
  const model = service.model(message.modelName, message.modelVersion);
  if (isDecoupled(model.config)) {
    throw new TritonError(
      "UNSUPPORTED",
      "ModelInfer RPC doesn't support models with decoupled transaction policy",
    );
  }
  return new Promise((resolve, reject) => {
    const outcomes: (InferenceResponse | TritonError)[] = [];
    let forget = (): void => {};
    const { request, classifications } = decodeInferRequest(
      message,
      forwardHeaders(call.headers),
      (outcome, final) => {
        if (outcome !== undefined) outcomes.push(outcome);
        if (!final) return;
        forget();
        try {
          resolve(singleResponse(outcomes, model, classifications));
        } catch (error) {
          reject(error);
        }
      },
    );
    service.infer(request);
    if (request.settled) return;
    call.onCancel(() => request.cancel());
    forget = shutdown.onExpire((reason) => void request.cancel(reason));
  });
}

function singleResponse(
  outcomes: readonly (InferenceResponse | TritonError)[],
  model: ReadyModel,
  classifications: Classifications,
): InferMessage {
  const [outcome] = outcomes;
  if (outcome === undefined || outcomes.length > 1) {
    throw new TritonError("INTERNAL", `expected a single response, got ${outcomes.length}`);
  }
  if (TritonError.is(outcome)) throw outcome;
  return encodeInferResponse(outcome, classifyOutputs(model, classifications));
}
