import { type ClientDuplexStream, type ServiceError, status } from "@grpc/grpc-js";
import { assertOptions, onAbort, optionTypes, type RequestSequence, TritonError } from "@tritonjs/protocol";
import {
  decodeMessage,
  encodeMessage,
  inference,
  inferencePath,
  type MessageDecoder,
  type MessageEncoder,
  type RpcRequest,
  type RpcResponse,
  type UnaryRpcName,
  unaryRpc,
} from "@tritonjs/protocol/grpc";
import { Caller, type Effect } from "../caller.js";
import type { CallDeadline } from "../deadline.js";
import type { InferResult } from "../infer-result.js";
import type { Compression } from "../options.js";
import { callError, callStatus } from "./call-error.js";
import {
  type CallOptions,
  type ClientOptions,
  STREAM_REQUEST_TYPES,
  type StreamInferRequest,
} from "./client-options.js";
import { type GrpcRequest, type GrpcServers, openGrpcCarrier, openStream } from "./grpc-carrier.js";
import {
  decodeInferResponse,
  encodeStreamRequest,
  type ResponseMessage as InferResponse,
} from "./infer-messages.js";

interface RemoteMethod<Q, R> {
  readonly path: string;
  readonly request: MessageEncoder<Q>;
  readonly response: MessageDecoder<R>;
  readonly idempotent: boolean;
  readonly balanced: boolean;
  readonly compression?: Compression | undefined;
}

export function method<N extends UnaryRpcName>(
  name: N,
  effect: Effect,
): RemoteMethod<RpcRequest<N>, RpcResponse<N>> {
  const described = { ...unaryRpc(name), idempotent: effect === "reads", balanced: effect === "infers" };
  // TypeScript does not see that the classes found by `name` encode and decode the types found by it.
  return described as unknown as RemoteMethod<RpcRequest<N>, RpcResponse<N>>;
}

/** Options of a call, and the sequence of an inference. */
type UnaryCallOptions = CallOptions & { readonly sequence?: RequestSequence | undefined };

/** An open stream and its deadline. The caller must end the deadline. */
interface OpenStream<Q, R> {
  readonly call: ClientDuplexStream<Q, R>;
  readonly deadline: CallDeadline;
}

export class GrpcCalls {
  readonly #carrier: GrpcServers;
  readonly #caller: Caller<GrpcRequest, Buffer>;

  constructor(urls: string | readonly string[], options: ClientOptions) {
    this.#carrier = openGrpcCarrier(urls, options);
    this.#caller = new Caller(this.#carrier, options);
  }

  async unary<Q, R>(method: RemoteMethod<Q, R>, message: Q, call: UnaryCallOptions): Promise<R> {
    const { path, idempotent, balanced, compression, request, response } = method;
    const bytes = encodeMessage(request, message);
    const { headers, sequence } = call;
    const outgoing = { path, idempotent, balanced, sequence, compression, bytes, headers };
    const answer = await this.#caller.call(outgoing, call);
    try {
      return decodeMessage(response, answer);
    } catch (error) {
      const details = `Response message parsing error: ${(error as Error).message}`;
      throw callError({ code: status.INTERNAL, details });
    }
  }

  /** Opens a stream, without a time limit unless the call has one. The caller must read it to its end, or cancel it. */
  async duplex<Q, R>(method: RemoteMethod<Q, R>, call: CallOptions): Promise<OpenStream<Q, R>> {
    const deadline = this.#caller.deadline(call, Number.POSITIVE_INFINITY);
    try {
      deadline.throwIfOver();
      const { path, compression } = method;
      const encode = (message: Q) => encodeMessage(method.request, message);
      const decode = (bytes: Buffer) => decodeMessage(method.response, bytes);
      const stream = await openStream(
        this.#carrier,
        { path, compression, encode, decode },
        call.headers,
        deadline,
      );
      return { call: stream, deadline };
    } catch (error) {
      deadline.end();
      throw error;
    }
  }

  /** Ends the calls in flight with CANCELLED. Later calls fail with UNAVAILABLE. */
  close(): void {
    this.#caller.close();
  }
}

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

const STREAM_TYPES = optionTypes<StreamInferOptions>({
  signal: "object",
  timeoutMs: "number",
  headers: "object",
  endOnError: "boolean",
  requestCompression: "string",
  sequence: "object",
});

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
  given: StreamInferOptions,
): AsyncGenerator<StreamInferResponse, void, void> {
  assertOptions("streamInfer()", given, STREAM_TYPES);
  const { endOnError, requestCompression, ...options } = given;
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
    assertOptions("request of streamInfer()", request, STREAM_REQUEST_TYPES);
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
