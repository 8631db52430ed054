import type { EndpointGroup } from "@tritonjs/core/extension";
import { errorFor, TritonError } from "@tritonjs/protocol";
import {
  decodeMessage,
  encodeMessage,
  FieldLimitError,
  inference,
  inferencePath,
  type MessageDecoder,
  type MessageEncoder,
} from "@tritonjs/protocol/grpc";
import type { RequestShare } from "@tritonjs/server";
import { RefusedCall, STATUS } from "../status-from-code.js";

/*
 * A method of a service as transports see it: they move messages without knowing their content. `handle` takes the type
 * that `decode` returns, and `encode` takes the type that `handle` returns. The functions below ensure that.
 */

interface MethodBase {
  /** `/package.Service/Name`. */
  readonly path: string;
  readonly protocol: EndpointGroup;
  /**
   * Asks whether the call may be made, before its messages are read; undefined where every call may. Rejects with the
   * error that the client gets.
   */
  readonly admit?: ((call: Call) => Promise<void>) | undefined;
  /** Throws a TritonError for a message that is rejected, and another error for bytes that are not a message. */
  readonly decode: (bytes: Uint8Array) => unknown;
  /** The message as consecutive parts, so that large contents need not be copied together. */
  readonly encode: (message: unknown) => readonly Uint8Array[];
}

/** One request, one response. Throws and rejects with the error that the client gets. */
export interface UnaryMethod extends MethodBase {
  readonly kind: "unary";
  readonly handle: (request: unknown, call: Call) => unknown;
}

export interface ServerStreamMethod extends MethodBase {
  readonly kind: "server-stream";
  readonly handle: (request: unknown, call: ResponseStream<unknown>) => void;
}

export interface DuplexMethod extends MethodBase {
  readonly kind: "duplex";
  readonly handle: (call: DuplexStream<unknown, unknown>) => void;
}

export type Method = UnaryMethod | ServerStreamMethod | DuplexMethod;

/** A method without its handler. */
interface MethodDefinition<Q, R> {
  readonly path: string;
  readonly protocol: EndpointGroup;
  readonly request: MessageDecoder<Q> | RequestDecoder<Q>;
  readonly response: MessageEncoder<R> | ResponseEncoder<R>;
}

/** Decodes a message in its own way, with its own limits. */
export interface RequestDecoder<Q> {
  readonly decodeRequest: (bytes: Uint8Array) => Q;
}

/**
 * Most fields of a message without a decoder of its own. The largest such message loads a model with its files, with
 * four fields for each file.
 */
export const MAX_FIELDS = 65_536;

interface ResponseEncoder<R> {
  readonly encodeParts: (message: R) => readonly Uint8Array[];
}

export function unary<Q, R>(
  definition: MethodDefinition<Q, R>,
  handle: (request: Q, call: Call) => R | Promise<R>,
): Method {
  return { ...base(definition), kind: "unary", handle: handle as UnaryMethod["handle"] };
}

type Messages = typeof inference;

/** Names of the methods of the inference service that have messages of their own. */
type RpcName = {
  [K in keyof Messages]: K extends `${infer N}Request`
    ? `${N}Response` extends keyof Messages
      ? N
      : never
    : never;
}[keyof Messages];

type RequestOf<N extends RpcName> = Messages[`${N}Request`] extends MessageDecoder<infer Q> ? Q : never;
type ResponseOf<N extends RpcName> = Messages[`${N}Response`] extends MessageEncoder<infer R> ? R : never;

export function rpc<N extends RpcName>(
  name: N,
  protocol: EndpointGroup,
  handle: (request: RequestOf<N>, call: Call) => ResponseOf<N> | Promise<ResponseOf<N>>,
): Method {
  const request = inference[`${name}Request`] as unknown as MessageDecoder<RequestOf<N>>;
  const response = inference[`${name}Response`] as unknown as MessageEncoder<ResponseOf<N>>;
  return unary({ path: inferencePath(name), protocol, request, response }, handle);
}

export function serverStream<Q, R>(
  definition: MethodDefinition<Q, R>,
  handle: (request: Q, call: ResponseStream<R>) => void,
): Method {
  return { ...base(definition), kind: "server-stream", handle: handle as ServerStreamMethod["handle"] };
}

export function duplex<Q, R>(
  definition: MethodDefinition<Q, R>,
  handle: (call: DuplexStream<Q, R>) => void,
): Method {
  return { ...base(definition), kind: "duplex", handle: handle as unknown as DuplexMethod["handle"] };
}

function base<Q, R>({ path, protocol, request, response }: MethodDefinition<Q, R>): MethodBase {
  return {
    path,
    protocol,
    decode: (bytes) =>
      "decodeRequest" in request ? request.decodeRequest(bytes) : decodeBounded(request, bytes),
    encode: (message) =>
      "encodeParts" in response
        ? response.encodeParts(message as R)
        : [encodeMessage(response, message as R)],
  };
}

/** @throws TritonError INVALID_ARG for a message with too many fields. */
function decodeBounded<Q>(type: MessageDecoder<Q>, bytes: Uint8Array): Q {
  try {
    return decodeMessage(type, bytes, MAX_FIELDS);
  } catch (error) {
    if (!(error instanceof FieldLimitError)) throw error;
    throw errorFor("REQUEST_TOO_LARGE", error.message);
  }
}

/**
 * Decodes the bytes of a request.
 *
 * @throws TritonError when the message is refused, RefusedCall INTERNAL when the bytes are not a message.
 */
export function decodeRequest({ decode }: Method, bytes: Uint8Array): unknown {
  try {
    return decode(bytes);
  } catch (error) {
    throw TritonError.is(error) ? error : new RefusedCall(STATUS.INTERNAL, "Error deserializing request");
  }
}

/** Headers of a call. Names are in lower case. */
export interface CallHeaders {
  /** The first value of a header. */
  get(name: string): string | undefined;
  /** All headers with text values, one entry for each value. */
  entries(): Iterable<readonly [name: string, value: string]>;
}

/** The part of a call that handlers see, besides its messages. */
export interface Call {
  readonly headers: CallHeaders;
  /** Address of the peer, if it is known. */
  readonly remoteAddress: string | undefined;
  /** True if a large message is in memory that belongs to it alone, and nothing but the handler sees it. */
  readonly ownsMessages: boolean;
  /**
   * Calls `listener` once when the call is over: answered, cancelled or abandoned by the client, or past its deadline.
   */
  onClose(listener: () => void): void;
  /** Adds metadata to the end of a successful call. Keys of bytes end in `-bin`. */
  addTrailer(name: string, value: string | Uint8Array): void;
}

export interface ResponseStream<R> extends Call {
  /** Sends a message. Returns false when the client reads too slowly: then wait for `onDrain`. */
  write(message: R): boolean;
  onDrain(listener: () => void): void;
  /** Ends the call; without an error its status is OK. Messages written before are still delivered. */
  end(error?: Error): void;
}

export interface DuplexStream<Q, R> extends ResponseStream<R> {
  /** Delivers each message with its share of the memory, which the listener has to release. */
  onMessage(listener: (message: Q, share: RequestShare) => void): void;
  /** Calls the listener when the client has sent its last message. */
  onHalfClose(listener: () => void): void;
  /** Pauses the delivery of messages. */
  pause(): void;
  resume(): void;
}

export interface ServedCall extends DuplexStream<unknown, unknown> {
  /** Ends the call with the status of a thrown error. */
  fail(error: unknown): void;
}

/** Runs the handler of a method once its call is admitted. Until then, the messages of the call stay unread. */
export function serveCall(method: Method, call: ServedCall): void {
  const { admit } = method;
  if (admit === undefined) {
    handle(method, call);
    return;
  }
  call.pause();
  admit(call).then(
    () => {
      handle(method, call);
      call.resume();
    },
    (error) => call.fail(error),
  );
}

function attempt(call: ServedCall, run: () => void): void {
  try {
    run();
  } catch (error) {
    call.fail(error);
  }
}

function handle(method: Method, call: ServedCall): void {
  if (method.kind === "duplex") {
    attempt(call, () => method.handle(call));
    return;
  }
  let request: unknown;
  call.onMessage((message, share) => {
    call.onClose(() => share.release());
    if (request === undefined) request = message;
    else call.fail(new RefusedCall(STATUS.UNIMPLEMENTED, "Received a second request message"));
  });
  call.onHalfClose(() => {
    if (request === undefined) {
      call.fail(new RefusedCall(STATUS.UNIMPLEMENTED, "Received no request message"));
    } else if (method.kind === "unary") void answer(method, request, call);
    else attempt(call, () => method.handle(request, call));
  });
}

async function answer(method: UnaryMethod, request: unknown, call: ServedCall): Promise<void> {
  try {
    call.write(await method.handle(request, call));
    call.end();
  } catch (error) {
    call.fail(error);
  }
}
