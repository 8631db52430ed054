import type { InferenceService } from "@tritonjs/core/frontend";
import { grpc } from "@tritonjs/protocol/grpc";
import type { Shutdown } from "../shutdown.js";
import { type Method, type ResponseStream, rpc, serverStream, unary } from "../transport/method.js";

const { HealthCheckRequest, HealthCheckResponse } = grpc.health.v1;
const { SERVING, NOT_SERVING } = HealthCheckResponse.ServingStatus;

/** Readiness of the server and its models: `ServerLive`, `ServerReady`, `ModelReady`, health `Check`. */
export function healthMethods(service: InferenceService): Method[] {
  return [
    rpc("ServerLive", "health", () => ({ live: service.isLive() })),
    rpc("ServerReady", "health", async () => ({ ready: await service.checkReady() })),
    rpc("ModelReady", "health", async ({ name, version }) => ({
      ready: await service.checkModelReady(name, version),
    })),
    unary(
      {
        path: "/grpc.health.v1.Health/Check",
        protocol: "health",
        request: HealthCheckRequest,
        response: HealthCheckResponse,
      },
      async () => ({
        status: (await service.checkReady()) ? SERVING : NOT_SERVING,
      }),
    ),
  ];
}

type Watcher = ResponseStream<grpc.health.v1.HealthCheckResponse.$Properties>;

/** Health `Watch`: sends the state of the server now, and at each change. */
export function healthWatchMethods(service: InferenceService, shutdown: Shutdown): Method[] {
  const watch = new ReadinessWatch(service);
  return [
    serverStream(
      {
        path: "/grpc.health.v1.Health/Watch",
        protocol: "health",
        request: HealthCheckRequest,
        response: HealthCheckResponse,
      },
      (_, call) => {
        shutdown.refuseIfBegun();
        const forget = shutdown.onExpire((reason) => call.end(reason));
        call.onClose(() => {
          forget();
          watch.remove(call);
        });
        watch.add(call);
      },
    ),
  ];
}

/** Tells watchers the state of the service. It listens to the service while there are watchers. */
class ReadinessWatch {
  readonly #service: InferenceService;
  readonly #told = new Map<Watcher, number>();
  #stopListening: (() => void) | undefined;

  constructor(service: InferenceService) {
    this.#service = service;
  }

  add(watcher: Watcher): void {
    this.#tell(watcher, this.#status());
    this.#stopListening ??= this.#service.onChange(() => this.#look());
  }

  remove(watcher: Watcher): void {
    this.#told.delete(watcher);
    if (this.#told.size > 0) return;
    this.#stopListening?.();
    this.#stopListening = undefined;
  }

  #look(): void {
    const status = this.#status();
    for (const [watcher, told] of [...this.#told]) if (told !== status) this.#tell(watcher, status);
  }

  #tell(watcher: Watcher, status: number): void {
    this.#told.set(watcher, status);
    watcher.write({ status });
  }

  #status(): number {
    return this.#service.isReady() ? SERVING : NOT_SERVING;
  }
}
