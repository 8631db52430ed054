import type { InferenceService } from "@tritonjs/core/frontend";
import { grpc, inference, inferencePath } from "@tritonjs/grpc-messages";
import { type Method, unary } from "../transport/method.js";

const { ServingStatus } = grpc.health.v1.HealthCheckResponse;

/** Readiness of the server and its models: `ServerLive`, `ServerReady`, `ModelReady`, health `Check`. */
export function healthMethods(service: InferenceService): Method[] {
  return [
    unary(
      {
        path: inferencePath("ServerLive"),
        protocol: "health",
        request: inference.ServerLiveRequest,
        response: inference.ServerLiveResponse,
      },
      () => ({ live: service.isLive() }),
    ),
    unary(
      {
        path: inferencePath("ServerReady"),
        protocol: "health",
        request: inference.ServerReadyRequest,
        response: inference.ServerReadyResponse,
      },
      async () => ({ ready: await service.checkReady() }),
    ),
    unary(
      {
        path: inferencePath("ModelReady"),
        protocol: "health",
        request: inference.ModelReadyRequest,
        response: inference.ModelReadyResponse,
      },
      async ({ name, version }) => ({ ready: await service.checkModelReady(name, version) }),
    ),
    unary(
      {
        path: "/grpc.health.v1.Health/Check",
        protocol: "health",
        request: grpc.health.v1.HealthCheckRequest,
        response: grpc.health.v1.HealthCheckResponse,
      },
      async () => ({
        status: (await service.checkReady()) ? ServingStatus.SERVING : ServingStatus.NOT_SERVING,
      }),
    ),
  ];
}
