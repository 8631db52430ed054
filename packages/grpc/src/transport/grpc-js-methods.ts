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
import { TritonError } from "@tritonjs/core";
import { RETRY_PUSHBACK, STATUS, statusFromError } from "../status-from-code.js";
import type { Call, CallHeaders, DuplexStream, ResponseStream } from "./call.js";
import type { DuplexMethod, Method, ServerStreamMethod, UnaryMethod } from "./method.js";

/*
 * Methods as grpc-js takes them. Responses are encoded before they are handed over, so that an error of the
 * encoding is told to the client like any other.
 */

/** A service that holds all `methods`, whichever service their paths name. */
export function grpcJsService(methods: readonly Method[]): {
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
      requestDeserialize: decoder(method),
      responseSerialize: identity,
      responseDeserialize: identity,
    };
    implementation[method.path] = handler(method);
  }
  return { definition, implementation };
}

/** grpc-js makes INTERNAL of whatever is thrown here: a refusal is handed over in place of the message. */
function decoder({ decode }: Method): (bytes: Buffer) => unknown {
  return (bytes) => {
    try {
      return decode(bytes);
    } catch (error) {
      if (TritonError.is(error)) return error;
      throw error;
    }
  };
}

/** The message that came. @throws TritonError when it was refused. */
function messageOf(received: unknown): unknown {
  if (TritonError.is(received)) throw received;
  return received;
}

const identity = (bytes: Buffer): Buffer => bytes;

function handler(method: Method): UntypedServiceImplementation[string] {
  switch (method.kind) {
    case "unary":
      return unaryHandler(method);
    case "server-stream":
      return serverStreamHandler(method);
    case "duplex":
      return duplexHandler(method);
  }
}

function unaryHandler(method: UnaryMethod) {
  return async (call: ServerUnaryCall<unknown, Buffer>, respond: sendUnaryData<Buffer>): Promise<void> => {
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
  return (call: ServerWritableStream<unknown, Buffer>): void => {
    const stream = new GrpcJsStream(call, method.encode);
    try {
      method.handle(messageOf(call.request), stream);
    } catch (error) {
      stream.end(error as Error);
    }
  };
}

function duplexHandler(method: DuplexMethod) {
  return (call: ServerDuplexStream<unknown, Buffer>): void => {
    const stream = new GrpcJsDuplex(call, method.encode);
    try {
      method.handle(stream);
    } catch (error) {
      stream.end(error as Error);
    }
  };
}

type AnyCall =
  | ServerUnaryCall<unknown, Buffer>
  | ServerWritableStream<unknown, Buffer>
  | ServerDuplexStream<unknown, Buffer>;

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

type WritableCall = ServerWritableStream<unknown, Buffer> | ServerDuplexStream<unknown, Buffer>;

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
  extends GrpcJsStream<ServerDuplexStream<unknown, Buffer>>
  implements DuplexStream<unknown, unknown>
{
  onMessage(listener: (message: unknown) => void): void {
    this.call.on("data", (received: unknown) => {
      if (TritonError.is(received)) this.end(received);
      else listener(received);
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
