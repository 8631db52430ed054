import type { EventEmitter } from "node:events";
import {
  Metadata,
  type ServerDuplexStream,
  type ServerUnaryCall,
  type ServerWritableStream,
  type ServiceDefinition,
  type sendUnaryData,
  type status,
  type UntypedServiceImplementation,
} from "@grpc/grpc-js";
import { type RequestMemory, type RequestShare, TritonError } from "@tritonjs/core";
import { RETRY_PUSHBACK } from "@tritonjs/grpc-messages";
import { STATUS, statusFromError } from "../status-from-code.js";
import type { Call, CallHeaders, DuplexStream, ResponseStream } from "./call.js";
import type { MessageShare, SharesOfMessages } from "./grpc-js-memory.js";
import type { DuplexMethod, Method, ServerStreamMethod, UnaryMethod } from "./method.js";

/*
 * Methods as grpc-js takes them. Responses are encoded before they are handed over, so that an error of the
 * encoding is told to the client like any other.
 */

/** A request as it is handed to a handler of grpc-js. */
interface Received {
  readonly message: unknown;
  /** Undefined for a version of grpc-js whose calls the memory limit cannot be put around. */
  readonly counted: MessageShare | undefined;
}

/**
 * A service that holds all `methods`, whichever service their paths name.
 *
 * @param shares the shares of the messages
 */
export function grpcJsService(
  methods: readonly Method[],
  memory: RequestMemory,
  shares: SharesOfMessages,
): {
  definition: ServiceDefinition;
  implementation: UntypedServiceImplementation;
} {
  const definition: Record<string, ServiceDefinition[string]> = {};
  const implementation: UntypedServiceImplementation = {};
  for (const method of methods) {
    definition[method.path] = {
      path: method.path,
      requestStream: method.kind === "duplex",
      responseStream: method.kind !== "unary",
      requestSerialize: identity,
      requestDeserialize: (bytes): Received => ({
        message: decoded(method, bytes),
        counted: shares.get(bytes),
      }),
      responseSerialize: identity,
      responseDeserialize: identity,
    };
    implementation[method.path] = handler(method, memory);
  }
  return { definition, implementation };
}

/** grpc-js makes INTERNAL of whatever is thrown here: a refusal is handed over in place of the message. */
function decoded({ decode }: Method, bytes: Buffer): unknown {
  try {
    return decode(bytes);
  } catch (error) {
    if (TritonError.is(error)) return error;
    throw error;
  }
}

/** The message that came. @throws TritonError when it was refused. */
function messageOf({ message }: Received): unknown {
  if (TritonError.is(message)) throw message;
  return message;
}

const identity = (bytes: Buffer): Buffer => bytes;

function handler(method: Method, memory: RequestMemory): UntypedServiceImplementation[string] {
  switch (method.kind) {
    case "unary":
      return unaryHandler(method);
    case "server-stream":
      return serverStreamHandler(method);
    case "duplex":
      return duplexHandler(method, memory);
  }
}

function unaryHandler(method: UnaryMethod) {
  return async (call: ServerUnaryCall<Received, Buffer>, respond: sendUnaryData<Buffer>): Promise<void> => {
    let response: Buffer;
    try {
      response = joined(method.encode(await method.handle(messageOf(call.request), new GrpcJsCall(call))));
    } catch (error) {
      respond(toServiceError(error));
      return;
    }
    respond(null, response);
  };
}

function serverStreamHandler(method: ServerStreamMethod) {
  return (call: ServerWritableStream<Received, Buffer>): void => {
    const stream = new GrpcJsStream(call, method.encode);
    try {
      method.handle(messageOf(call.request), stream);
    } catch (error) {
      stream.end(error as Error);
    }
  };
}

function duplexHandler(method: DuplexMethod, memory: RequestMemory) {
  return (call: ServerDuplexStream<Received, Buffer>): void => {
    const stream = new GrpcJsDuplex(call, method.encode, memory);
    try {
      method.handle(stream);
    } catch (error) {
      stream.end(error as Error);
    }
  };
}

type AnyCall =
  | ServerUnaryCall<Received, Buffer>
  | ServerWritableStream<Received, Buffer>
  | ServerDuplexStream<Received, Buffer>;

class GrpcJsCall<C extends AnyCall> implements Call {
  protected readonly call: C;
  readonly headers: CallHeaders;

  constructor(call: C) {
    this.call = call;
    this.headers = callHeaders(call.metadata);
  }

  onClose(listener: () => void): void {
    if (this.call.cancelled) listener();
    else (this.call as EventEmitter).once("cancelled", listener);
  }
}

type WritableCall = ServerWritableStream<Received, Buffer> | ServerDuplexStream<Received, Buffer>;

class GrpcJsStream<C extends WritableCall> extends GrpcJsCall<C> implements ResponseStream<unknown> {
  readonly #encode: (message: unknown) => readonly Uint8Array[];

  constructor(call: C, encode: (message: unknown) => readonly Uint8Array[]) {
    super(call);
    this.#encode = encode;
  }

  write(message: unknown): boolean {
    if (this.call.cancelled) return true;
    return this.call.write(joined(this.#encode(message)));
  }

  onDrain(listener: () => void): void {
    this.call.on("drain", listener);
  }

  /** An `error` event sets the status, also that of a good end: grpc-js would send the text "OK" with it. */
  end(error?: Error): void {
    if (this.call.cancelled) return;
    this.call.emit("error", error === undefined ? GOOD_END : toServiceError(error));
  }
}

const GOOD_END = { code: STATUS.OK, details: "" };

class GrpcJsDuplex
  extends GrpcJsStream<ServerDuplexStream<Received, Buffer>>
  implements DuplexStream<unknown, unknown>
{
  readonly #memory: RequestMemory;

  constructor(
    call: ServerDuplexStream<Received, Buffer>,
    encode: (message: unknown) => readonly Uint8Array[],
    memory: RequestMemory,
  ) {
    super(call, encode);
    this.#memory = memory;
  }

  onMessage(listener: (message: unknown, share: RequestShare) => void): void {
    this.call.on("data", ({ message, counted }: Received) => {
      if (TritonError.is(message)) {
        this.end(message);
        return;
      }
      counted?.takeOver();
      listener(message, counted?.share ?? this.#memory.share());
    });
  }

  onHalfClose(listener: () => void): void {
    this.call.on("end", listener);
  }

  pause(): void {
    this.call.pause();
  }

  resume(): void {
    this.call.resume();
  }
}

function callHeaders(metadata: Metadata): CallHeaders {
  return {
    get: (name) => metadata.get(name).find((value) => typeof value === "string"),
    *entries() {
      for (const name of Object.keys(metadata.getMap())) {
        for (const value of metadata.get(name)) if (typeof value === "string") yield [name, value];
      }
    },
  };
}

function joined(parts: readonly Uint8Array[]): Buffer {
  const [first] = parts;
  return parts.length === 1 && Buffer.isBuffer(first) ? first : Buffer.concat(parts);
}

/** The error in the form in which grpc-js takes a status. */
function toServiceError(error: unknown): Error & { code: status; details: string; metadata: Metadata } {
  const { code, details, retryAfterMs } = statusFromError(TritonError.from(error));
  const metadata = new Metadata();
  if (retryAfterMs !== undefined) metadata.set(RETRY_PUSHBACK, String(retryAfterMs));
  return Object.assign(new Error(details), { code: code as status, details, metadata });
}
