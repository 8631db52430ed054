import { type ClientDuplexStream, status } from "@grpc/grpc-js";
import type { RequestSequence } from "@tritonjs/protocol";
import {
  decodeMessage,
  encodeMessage,
  type MessageDecoder,
  type MessageEncoder,
  type RpcRequest,
  type RpcResponse,
  type UnaryRpcName,
  unaryRpc,
} from "@tritonjs/protocol/grpc";
import { Caller, type Effect } from "../caller.js";
import type { CallDeadline } from "../deadline.js";
import type { Compression } from "../options.js";
import { callError } from "./call-error.js";
import type { CallOptions, ClientOptions } from "./client-options.js";
import { type GrpcRequest, type GrpcServers, openGrpcCarrier, openStream } from "./grpc-carrier.js";

export interface RemoteMethod<Q, R> {
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
export interface OpenStream<Q, R> {
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
