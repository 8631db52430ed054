import type { InferenceService, LogChanges, LogSubject, TraceChanges } from "@tritonjs/core/frontend";
import type { AuthenticationRequest } from "@tritonjs/core/types";
import type { EngineRequests, SentArrival } from "./engine-requests.js";

/** A request to authenticate. Headers cannot be cloned, so they are a list. */
export type ClonedAuthenticationRequest = Omit<AuthenticationRequest, "headers"> & {
  readonly headers: readonly (readonly [string, string])[];
};

/** Methods of the service that threads call as they are. */
const FORWARDED = [
  "checkReady",
  "checkModelReady",
  "modelReadiness",
  "modelConfig",
  "statistics",
  "queue",
  "loadReport",
  "repositoryIndex",
  "loadModel",
  "unloadModel",
  "registerModelRepository",
  "unregisterModelRepository",
  "metrics",
  "metricsFor",
] as const satisfies readonly (keyof InferenceService)[];

/** A method of the service that threads call as it is. */
export type ForwardedMethod = (typeof FORWARDED)[number];

type Methods = Readonly<Record<string, (...args: never[]) => unknown>>;

/** The calls of a thread other than requests for models. */
export function serviceCalls(service: InferenceService, requests: EngineRequests): Methods {
  const { log, sharedMemory, tracing, authentication } = service;
  const forwarded = Object.fromEntries(
    FORWARDED.map((name) => [
      name,
      (...args: unknown[]) => (service[name] as (...args: unknown[]) => unknown).apply(service, args),
    ]),
  );
  return {
    ...forwarded,
    authenticate: (request: ClonedAuthenticationRequest) =>
      authentication?.check({ ...request, headers: new Headers(request.headers.map(([...pair]) => pair)) }),
    updateLog: (changes: LogChanges) => log.update(changes),
    log: (level: "error" | "warning" | "info", message: string, about?: LogSubject) =>
      log[level](message, about),
    logVerbose: (message: string, about?: LogSubject) => log.verbose(1, message, about),
    traceSettings: (model: string) => tracing?.settings(model),
    updateTraces: (model: string, changes: TraceChanges) => tracing?.update(model, changes),
    tracedHere: (model: string, arrival: SentArrival, status: number | string | undefined) =>
      requests.tracedThere(model, arrival, status),
    systemStatus: (name: string) => sharedMemory.systemStatus(name),
    registerSystem: (name: string, region: Parameters<typeof sharedMemory.registerSystem>[1]) =>
      sharedMemory.registerSystem(name, region),
    unregisterSystem: (name: string) => sharedMemory.unregisterSystem(name),
    cudaStatus: (name: string) => sharedMemory.cudaStatus(name),
    settleRegions: () => sharedMemory.settleAll(),
  } as Methods;
}
