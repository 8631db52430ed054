import { disableTelemetry } from "../backends/onnxruntime/disable-telemetry.js";
import { changedGroups } from "../binding/instance-changes.js";
import { resolveSecurity } from "../frontend/security.js";
import { ModelRegistry } from "../model/registry.js";
import { createLog, type OpenLog } from "../observe/log/create-log.js";
import { GpuMetrics } from "../observe/machine/gpu-metrics.js";
import { MetricsPage } from "../observe/metrics-page.js";
import { createRepository } from "../repository/create-repository.js";
import type { ModelRepository } from "../repository/model-repository.js";
import { StartUp } from "../repository/start-up.js";
import { RequestMemory } from "../request-memory/request-memory.js";
import { createAuthentication } from "../service/authentication.js";
import { ServerInspector } from "../service/inspect/server-inspector.js";
import { LocalService } from "../service/local-service.js";
import { meteredModels } from "../service/metered-models.js";
import { saysReady } from "../service/model-readiness.js";
import { SharedMemory } from "../shared-memory/shared-memory.js";
import { ModelsOfServer } from "./server-models.js";
import type { TritonOptions } from "./triton-options.js";
import { VERSION } from "./version.js";

/** The parts of a server. */
export interface ServerParts {
  readonly registry: ModelRegistry;
  readonly models: ModelsOfServer;
  readonly repository: ModelRepository;
  readonly startUp: StartUp;
  readonly service: LocalService;
  readonly metrics: MetricsPage;
  readonly log: OpenLog;
  /** Token that clients send to use restricted endpoints. */
  readonly accessToken: string | undefined;
}

/** Makes the parts of a server and connects them. Loading the models of its repository begins. */
export function assembleServer(options: TritonOptions): ServerParts {
  // Models of all kinds may run ONNX Runtime: Python models, JavaScript models, callbacks.
  disableTelemetry();
  const { accessToken, restrictions, allowedHosts } = resolveSecurity(options.security);
  const log = createLog(options);
  const registry = new ModelRegistry(options.modelNamespacing);
  const models = new ModelsOfServer(options, registry, log.log, () => metrics.registry);
  const requestMemory = new RequestMemory(options.requestMemory);
  const { allowCpuMetrics, allowGpuMetrics = true, metricsIntervalMs = 2000, metricsConfig } = options;
  const hasGpus = allowGpuMetrics && options.gpus?.length !== 0;
  const metrics = new MetricsPage(
    {
      models: () => meteredModels(registry),
      ...(allowCpuMetrics !== undefined && { allowCpuMetrics }),
      ...(metricsConfig !== undefined && { metricsConfig }),
      gpus: hasGpus ? new GpuMetrics(metricsIntervalMs, log.log) : undefined,
      memory: requestMemory,
      cache: models.cacheUsage() === undefined ? undefined : () => models.cacheUsage(),
    },
    options.metrics,
  );
  const repository = createRepository(
    { options, registry, log: log.log, clock: models.clock, gpus: models.gpus },
    (own) => models.create(own),
  );
  models.repository = {
    // A model does not wait for removed instances, because it may run on one of them.
    load: async (name, given) => void (await repository.loadModel(name, given)),
    unload: async (name, given) => void (await repository.unloadModel(name, given)),
    isReady: async (name, version) => {
      const ready = registry.ready(name).filter((one) => version === "" || String(one.version) === version);
      const latest = ready.at(-1);
      return latest !== undefined && saysReady(latest, log.log);
    },
  };
  const authentication = createAuthentication(options.security, log.log);
  const sharedMemory = new SharedMemory(options.allowClientSharedMemory ?? false);
  // What follows throws no error, so the registry of the program keeps no metrics of a server that failed.
  metrics.open();
  const startUp = new StartUp(repository, options, log.log);
  const inspector = new ServerInspector({
    registry,
    modelControlMode: options.modelControlMode ?? "none",
    cacheUsage: () => models.cacheUsage(),
    async changeInstances(model, count) {
      const check = model.instanceProblems ?? (() => []);
      await model.updateInstances(changedGroups(count, model.config, models.gpus, check));
    },
  });
  const service = new LocalService({
    registry,
    repository,
    startUp,
    log: log.log,
    tracing: models.tracing,
    sharedMemory,
    requestMemory,
    restrictions,
    allowedHosts,
    authentication,
    inspector,
    metrics,
    identity: { id: options.id ?? "triton", version: VERSION },
    strictReadiness: options.strictReadiness ?? true,
    allowModelFileOverride: options.allowModelFileOverride ?? false,
  });
  return { registry, models, repository, startUp, service, metrics, log, accessToken };
}
