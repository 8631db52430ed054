import type { Server } from "@grpc/grpc-js";
import { checkOptionNames, type InferenceService } from "@tritonjs/core/frontend";
import { TritonError } from "@tritonjs/protocol";
import { HANDLER_OPTION_KEYS, type HandlerOptions, protocolMethods } from "./handlers/methods.js";
import { Shutdown } from "./handlers/shutdown.js";
import { type GrpcJsService, grpcJsServices } from "./transport/grpc-js/grpc-js-services.js";

/** Options of {@link addV2Service}. */
export interface V2ServiceOptions extends HandlerOptions {
  /** Adds `grpc.health.v1.Health` too. Set it to false when the server already has a health service. @default true */
  readonly health?: boolean;
}

const HEALTH_SERVICE = "grpc.health.v1.Health";

/**
 * Adds the v2 protocol to a server of `@grpc/grpc-js` that the program opens and closes itself. The services are
 * `inference.GRPCInferenceService`, `grpc.health.v1.Health` and, with `reflection`, server reflection. Call it before
 * or after `bindAsync`.
 *
 * The server keeps its port, credentials, interceptors and limits: set `grpc.max_receive_message_length` for messages
 * above 4 MiB. When the `Triton` closes, the methods reject new requests with UNAVAILABLE, and requests in flight
 * finish.
 *
 * @param triton a `Triton`, or any other object with a service
 * @throws TritonError ALREADY_EXISTS when the server already has one of the services. Then none is added.
 * INVALID_ARG for an unknown option.
 * @example
 * ```ts
 * const server = new Server({ "grpc.max_receive_message_length": 64 * 1024 * 1024 });
 * server.addService(greeterDefinition, greeter);
 * addV2Service(server, triton);
 * ```
 */
export function addV2Service(
  server: Pick<Server, "addService" | "removeService">,
  triton: { readonly service: InferenceService },
  options: V2ServiceOptions = {},
): void {
  checkOptionNames("addV2Service()", options, ["health", ...HANDLER_OPTION_KEYS]);
  const { service } = triton;
  const shutdown = new Shutdown();
  const methods = protocolMethods(service, options, shutdown);
  const services = grpcJsServices(methods, service.requestMemory);
  const { health = true } = options;
  addAll(server, health ? services : services.filter(({ name }) => name !== HEALTH_SERVICE));
  service.mount?.({ drain: () => shutdown.begin(), end: () => shutdown.expire() });
}

/** Adds method by method: when `addService` finds a method already present, it keeps the methods added before it. */
function addAll(
  server: Pick<Server, "addService" | "removeService">,
  services: readonly GrpcJsService[],
): void {
  const added: GrpcJsService["definition"][] = [];
  for (const { name, definition, implementation } of services) {
    for (const [path, method] of Object.entries(definition)) {
      const one = { [path]: method };
      try {
        server.addService(one, implementation);
      } catch (cause) {
        for (const earlier of added) server.removeService(earlier);
        throw new TritonError("ALREADY_EXISTS", clashText(name), { cause });
      }
      added.push(one);
    }
  }
}

function clashText(name: string): string {
  const hint =
    name === HEALTH_SERVICE
      ? "; call addV2Service with { health: false } to keep the one of the server"
      : name.startsWith("grpc.reflection.")
        ? "; call addV2Service without { reflection: true } to keep the one of the server"
        : "";
  return `cannot add the service ${name}: the server already has it${hint}`;
}
