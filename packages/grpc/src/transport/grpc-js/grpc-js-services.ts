import type {
  ServerDuplexStream,
  ServerUnaryCall,
  ServerWritableStream,
  ServiceDefinition,
  sendUnaryData,
  UntypedServiceImplementation,
} from "@grpc/grpc-js";
import type { RequestMemory } from "@tritonjs/core/frontend";
import type { Call } from "../call.js";
import {
  type DuplexMethod,
  decodeRequest,
  type Method,
  type ServerStreamMethod,
  type UnaryMethod,
} from "../method.js";
import { GrpcJsCall, GrpcJsDuplex, GrpcJsStream, joinedParts, serviceErrorOf } from "./grpc-js-call.js";

/** A service in the form that `addService` of grpc-js expects. */
export interface GrpcJsService {
  /** `package.Service`. */
  readonly name: string;
  readonly definition: ServiceDefinition;
  readonly implementation: UntypedServiceImplementation;
}

/** Groups methods by the service in their paths. */
export function grpcJsServices(methods: readonly Method[], memory: RequestMemory): GrpcJsService[] {
  const names = [...new Set(methods.map(({ path }) => serviceOfPath(path)))];
  return names.map((name) => {
    const own = methods.filter(({ path }) => serviceOfPath(path) === name);
    return {
      name,
      definition: Object.fromEntries(own.map((method) => [method.path, definitionOf(method)])),
      implementation: Object.fromEntries(own.map((method) => [method.path, handlerOf(method, memory)])),
    };
  });
}

/** `package.Service` of `/package.Service/Method`. */
function serviceOfPath(path: string): string {
  return path.slice(1, path.lastIndexOf("/"));
}

function definitionOf({ path, kind }: Method): ServiceDefinition[string] {
  return {
    path,
    requestStream: kind === "duplex",
    responseStream: kind !== "unary",
    requestSerialize: identity,
    requestDeserialize: identity,
    responseSerialize: identity,
    responseDeserialize: identity,
  };
}

const identity = (bytes: Buffer): Buffer => bytes;

function handlerOf(method: Method, memory: RequestMemory): UntypedServiceImplementation[string] {
  switch (method.kind) {
    case "unary":
      return unaryHandler(method, memory);
    case "server-stream":
      return serverStreamHandler(method, memory);
    case "duplex":
      return duplexHandler(method, memory);
  }
}

function unaryHandler(method: UnaryMethod, memory: RequestMemory) {
  return async (call: ServerUnaryCall<Buffer, Buffer>, respond: sendUnaryData<Buffer>): Promise<void> => {
    const adapted = new GrpcJsCall(call);
    let response: Buffer;
    try {
      if (method.admit !== undefined) await method.admit(adapted);
      const request = receive(method, call.request, adapted, memory);
      response = joinedParts(method.encode(await method.handle(request, adapted)));
    } catch (error) {
      respond(serviceErrorOf(error));
      return;
    }
    respond(null, response, adapted.trailers);
  };
}

function serverStreamHandler(method: ServerStreamMethod, memory: RequestMemory) {
  return (call: ServerWritableStream<Buffer, Buffer>): void => {
    const stream = new GrpcJsStream(call, method);
    start(method, stream, () => method.handle(receive(method, call.request, stream, memory), stream));
  };
}

function duplexHandler(method: DuplexMethod, memory: RequestMemory) {
  return (call: ServerDuplexStream<Buffer, Buffer>): void => {
    const stream = new GrpcJsDuplex(call, method, memory);
    start(method, stream, () => method.handle(stream));
  };
}

/** Runs the handler of a stream once its call is admitted. Until then grpc-js keeps the messages. */
function start({ admit }: Method, stream: Call & { fail(error: unknown): void }, handle: () => void): void {
  const run = () => {
    try {
      handle();
    } catch (error) {
      stream.fail(error);
    }
  };
  if (admit === undefined) run();
  else admit(stream).then(run, (error) => stream.fail(error));
}

/** Decodes the only request of a call. Its bytes count until the call is over. */
function receive(method: Method, bytes: Buffer, call: Call, memory: RequestMemory): unknown {
  const share = memory.share();
  share.take(bytes.length);
  call.onClose(() => share.release());
  return decodeRequest(method, bytes);
}
