import { grpc } from "@tritonjs/protocol/grpc";
import { descriptors, type FileDescriptor } from "@tritonjs/protocol/grpc/descriptors";
import type { Shutdown } from "../shutdown.js";
import { STATUS } from "../status-from-code.js";
import { type DuplexStream, duplex, type Method } from "../transport/method.js";

const { ServerReflectionRequest, ServerReflectionResponse } = grpc.reflection.v1;

type Request = grpc.reflection.v1.ServerReflectionRequest & grpc.reflection.v1.ServerReflectionRequest.$Shape;
type Response = grpc.reflection.v1.ServerReflectionResponse.$Properties;
type Answer = Omit<Response, "validHost" | "originalRequest">;

/** Both services use the same messages. */
const SERVICES = ["grpc.reflection.v1.ServerReflection", "grpc.reflection.v1alpha.ServerReflection"];

/** Server reflection: lists the services and describes their messages. */
export function reflectionMethods(shutdown: Shutdown): Method[] {
  return SERVICES.map((service) =>
    duplex(
      {
        path: `/${service}/ServerReflectionInfo`,
        protocol: "metadata",
        request: ServerReflectionRequest,
        response: ServerReflectionResponse,
      },
      (stream: DuplexStream<Request, Response>) => {
        shutdown.refuseIfBegun();
        const forget = shutdown.onExpire((reason) => stream.end(reason));
        stream.onClose(forget);
        stream.onDrain(() => stream.resume());
        stream.onHalfClose(() => stream.end());
        stream.onMessage((request, share) => {
          share.release();
          const response = { validHost: request.host, originalRequest: request, ...answer(request) };
          if (!stream.write(response)) stream.pause();
        });
      },
    ),
  );
}

function answer(request: Request): Answer {
  const { fileByFilename, fileContainingSymbol, allExtensionNumbersOfType } = request;
  switch (request.messageRequest) {
    case "listServices":
      return { listServicesResponse: { service: serviceNames.map((name) => ({ name })) } };
    case "fileByFilename":
      return file(
        descriptors.find(({ name }) => name === fileByFilename),
        `file ${fileByFilename}`,
      );
    case "fileContainingSymbol":
      return file(fileBySymbol.get(fileContainingSymbol!), `symbol ${fileContainingSymbol}`);
    case "allExtensionNumbersOfType":
      return fileBySymbol.has(allExtensionNumbersOfType!)
        ? { allExtensionNumbersResponse: { baseTypeName: allExtensionNumbersOfType } }
        : notFound(`type ${allExtensionNumbersOfType}`);
    case "fileContainingExtension":
      return notFound("extension");
    default:
      return failed(STATUS.INVALID_ARGUMENT, "the request asks for nothing");
  }
}

const serviceNames = descriptors.flatMap(({ services }) => services);

const fileBySymbol: ReadonlyMap<string, FileDescriptor> = new Map(
  descriptors.flatMap((file) => file.symbols.map((symbol) => [symbol, file] as const)),
);

/** No file imports another, so the answer is one file. */
function file(descriptor: FileDescriptor | undefined, what: string): Answer {
  if (descriptor === undefined) return notFound(what);
  return { fileDescriptorResponse: { fileDescriptorProto: [Buffer.from(descriptor.bytes, "base64")] } };
}

function notFound(what: string): Answer {
  return failed(STATUS.NOT_FOUND, `${what} not found`);
}

function failed(errorCode: number, errorMessage: string): Answer {
  return { errorResponse: { errorCode, errorMessage } };
}
