import {
  type InferenceResponse,
  isDecoupled,
  type ReadyModel,
  RequestRegions,
  TritonError,
} from "@tritonjs/core";
import type { inference } from "@tritonjs/grpc-messages";
import { inferencePath } from "@tritonjs/grpc-messages";
import { contentBytes } from "../decode/content-bytes.js";
import { decodeInferRequest } from "../decode/infer-request.js";
import { inferRequestDecoder } from "../decode/infer-request-decoder.js";
import { encodeInferResponse } from "../encode/infer-response.js";
import { encodeInferResponseParts } from "../encode/infer-response-parts.js";
import type { Call } from "../transport/call.js";
import { type Method, unary } from "../transport/method.js";
import { GrpcSampler } from "./grpc-trace.js";
import type { InferContext } from "./infer-context.js";
import { outputFilter } from "./output-filter.js";

type InferMessage = inference.ModelInferResponse.$Properties;

/** Tensors of a message that waits for the turn of its refusal. */
const MOST_KEPT_BYTES = 64 * 1024;

/** `ModelInfer`. */
export function inferMethods(context: InferContext): Method[] {
  const sampler = new GrpcSampler(context.service.tracing);
  return [
    unary(
      {
        path: inferencePath("ModelInfer"),
        protocol: "inference",
        request: inferRequestDecoder(context.service),
        response: { encodeParts: encodeInferResponseParts },
      },
      (message, call) => modelInfer(context, message, call, sampler),
    ),
  ];
}

function modelInfer(
  context: InferContext,
  message: inference.ModelInferRequest,
  call: Call,
  sampler: GrpcSampler,
): Promise<InferMessage> {
  const { service, shutdown } = context;
  shutdown.refuseIfBegun();
  const model = service.model(message.modelName, message.modelVersion);
  if (isDecoupled(model.config)) {
    throw new TritonError(
      "UNSUPPORTED",
      "ModelInfer RPC doesn't support models with decoupled transaction policy",
      { reason: "DECOUPLED_MODEL" },
    );
  }
  const { modelName, modelVersion, id } = message;
  const room = mayWait(message) ? service.awaitRoom?.(modelName, modelVersion, id) : undefined;
  if (room !== undefined) {
    return room.then(() => inferOne(context, service.model(modelName, modelVersion), message, call, sampler));
  }
  return inferOne(context, model, message, call, sampler);
}

function inferOne(
  { service, forwardHeaders, shutdown }: InferContext,
  model: ReadyModel,
  message: inference.ModelInferRequest,
  call: Call,
  sampler: GrpcSampler,
): Promise<InferMessage> {
  const trace = sampler.sample(model.name, call.headers);
  if (trace !== undefined) call.onClose(() => trace.sent());
  return new Promise((resolve, reject) => {
    const outcomes: (InferenceResponse | TritonError)[] = [];
    const regions = new RequestRegions(service.sharedMemory);
    let forget = (): void => {};
    const refuse = (error: unknown): void => {
      regions.release();
      trace?.sending();
      reject(error);
    };
    try {
      const { request, outputs } = decodeInferRequest(
        message,
        forwardHeaders(call.headers),
        regions,
        (outcome, final) => {
          if (outcome !== undefined) outcomes.push(outcome);
          trace?.responded();
          if (!final) return;
          forget();
          try {
            const response = encodeInferResponse(single(outcomes), outputFilter(model, outputs));
            trace?.sending();
            resolve(response);
            regions.release();
          } catch (error) {
            refuse(error);
          }
        },
        trace?.request,
      );
      service.infer(request);
      if (request.settled) return;
      call.onClose(() => {
        if (!request.settled) request.cancel();
      });
      forget = shutdown.onExpire((reason) => void request.cancel(reason));
    } catch (error) {
      const isRefusal = TritonError.is(error) && error.code === "UNAVAILABLE";
      const turn = isRefusal && mayWait(message) ? service.refusalTurn?.() : undefined;
      if (turn === undefined) refuse(error);
      else void turn.then(() => refuse(error));
    }
  });
}

/** Whether a message may be kept until the turn of its refusal. Large ones are refused at once, to have their memory back. */
function mayWait(message: inference.ModelInferRequest): boolean {
  return contentBytes(message) <= MOST_KEPT_BYTES;
}

/** The one response of a request. */
function single(outcomes: readonly (InferenceResponse | TritonError)[]): InferenceResponse {
  const [outcome] = outcomes;
  if (outcome === undefined || outcomes.length > 1) {
    throw new TritonError("INTERNAL", `expected a single response, got ${outcomes.length}`, {
      reason: "INVALID_OUTPUT",
    });
  }
  if (TritonError.is(outcome)) throw outcome;
  return outcome;
}
