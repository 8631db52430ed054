import { type ClientDuplexStream, type ServiceError, status } from "@grpc/grpc-js";
import { onAbort, type RequestSequence, TritonError } from "@tritonjs/protocol";
import { inference, inferencePath } from "@tritonjs/protocol/grpc";
import type { CallDeadline } from "../deadline.js";
import type { InferResult } from "../infer-result.js";
import type { Compression } from "../options.js";
import { callError, callStatus } from "./call-error.js";
import type { CallOptions, StreamInferRequest } from "./client-options.js";
import type { GrpcCalls, RemoteMethod } from "./grpc-calls.js";
import {
  decodeInferResponse,
  encodeStreamRequest,
  type ResponseMessage as InferResponse,
} from "./infer-messages.js";

/** Requests of a stream: a collection, or requests that come over time. */
export type StreamRequests = Iterable<StreamInferRequest> | AsyncIterable<StreamInferRequest>;

/** Options of a stream. `timeoutMs` limits the whole stream. */
export interface StreamInferOptions extends CallOptions {
  /** Ends the stream with the first error of a model: the iteration throws it. @default false */
  readonly endOnError?: boolean;
  /** @default that of the client */
  readonly requestCompression?: Compression;
  /** Opens the stream with the id in the client's `sequenceHeader`. All requests of a stream reach one server. */
  readonly sequence?: Pick<RequestSequence, "id">;
}

/** A response of a stream: a result, or the error of one request, after which the stream continues. */
export type StreamInferResponse = {
  /** The id of the request. */
  readonly id: string;
  /** True for the last response to the request. It may have no outputs. */
  readonly final: boolean;
} & (
  | { readonly result: InferResult<InferResponse>; readonly error?: undefined }
  | { readonly error: TritonError; readonly result?: undefined }
);

type RequestMessage = inference.ModelInferRequest.$Properties;
type ResponseMessage = inference.ModelStreamInferResponse.$Properties;
type Stream = ClientDuplexStream<RequestMessage, ResponseMessage>;

const modelStreamInfer: RemoteMethod<RequestMessage, ResponseMessage> = {
  path: inferencePath("ModelStreamInfer"),
  request: inference.ModelInferRequest,
  response: inference.ModelStreamInferResponse,
  idempotent: false,
  balanced: true,
};

/** Header that makes the first error of a model end the stream. */
const ERROR_MODE = { triton_grpc_error: "true" };

/**
 * Sends requests and yields responses as they come, both at the same time. The server's back-pressure limits the
 * requests. Leaving the loop cancels the requests in flight.
 */
export async function* streamInfer(
  calls: GrpcCalls,
  requests: StreamRequests,
  { endOnError, requestCompression, ...options }: StreamInferOptions,
): AsyncGenerator<StreamInferResponse, void, void> {
  const headers = endOnError ? { ...options.headers, ...ERROR_MODE } : options.headers;
  const { call, deadline } = await calls.duplex(
    { ...modelStreamInfer, compression: requestCompression },
    { ...options, headers },
  );
  let fault: unknown;
  const giveUp = (reason: unknown): void => {
    fault ??= reason;
    call.cancel();
  };
  // A cancelled call emits its status as an event, even after the iteration has ended.
  call.on("error", () => {});
  const forget = onAbort(deadline.signal, () => giveUp(deadline.fault));
  const over = new AbortController();
  send(call, requests, over.signal).catch(giveUp);
  try {
    for await (const message of call) yield toResponse(message as ResponseMessage);
  } catch (error) {
    throw fault ?? streamError(error, deadline);
  } finally {
    forget();
    deadline.end();
    over.abort();
    call.cancel();
  }
}

async function send(call: Stream, requests: StreamRequests, over: AbortSignal): Promise<void> {
  for await (const request of requests) {
    if (over.aborted) return;
    if (!call.write(encodeStreamRequest(request))) await writable(call, over);
    if (over.aborted) return;
  }
  call.end();
}

/** Resolves when the stream accepts more requests, or is over. */
function writable(call: Stream, over: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const drained = (): void => {
      forget();
      resolve();
    };
    call.once("drain", drained);
    const forget = onAbort(over, () => {
      call.removeListener("drain", drained);
      resolve();
    });
  });
}

function toResponse({ errorMessage, inferResponse }: ResponseMessage): StreamInferResponse {
  const id = inferResponse?.id ?? "";
  const refused = inferResponse?.parameters?.triton_final_response === undefined && errorMessage !== "";
  const final = refused || inferResponse?.parameters?.triton_final_response?.boolParam === true;
  if (errorMessage) return { id, final, error: new TritonError("UNKNOWN", errorMessage) };
  return { id, final, result: decodeInferResponse(inferResponse ?? {}) };
}

function streamError(error: unknown, deadline: CallDeadline): TritonError {
  if (TritonError.is(error)) return error;
  const { code } = error as ServiceError;
  if (code === undefined) return TritonError.from(error);
  return code === status.DEADLINE_EXCEEDED
    ? deadline.expired()
    : callError(callStatus(error as ServiceError));
}
