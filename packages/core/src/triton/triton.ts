import {
  assertOptions,
  errorFor,
  type InferOptions,
  type NamedInputs,
  type NamedOutputs,
  type TensorSpec,
  type TensorSpecs,
  TritonError,
} from "@tritonjs/protocol";
import type { Registry } from "prom-client";
import { disableTelemetry } from "../backends/onnx-telemetry.js";
import type {
  AnyBindOptions,
  BindEnsembleOptions,
  BindMethodOptions,
  BindOptions,
  BoundFunc,
  BoundInputs,
  BoundOutputs,
  InferFuncOption,
  InputsOfModel,
  OutputsOfModel,
  RebindOptions,
} from "../bind/bind-options.js";
import { type ModelHandle, modelHandle } from "../bind/model-handle.js";
import { ensembleStays, planBinding, planEnsemble, replanBinding } from "../bind/plan-binding.js";
import { changedGroups } from "../bind/plan-executors.js";
import { planModule } from "../bind/plan-module.js";
import { GuardedCache, MemoryCache } from "../cache/response-cache.js";
import { type Gpus, GpusOrCpu, listedGpus, MachineGpus } from "../config/gpus.js";
import { checkShares, type ShareOptions } from "../config/model-options.js";
import { resolveSecurity } from "../frontend/security.js";
import {
  checkFrontendThreads,
  type Frontend,
  type FrontendThreads,
  loadDefaultFrontends,
  openFrontends,
  placeFrontends,
  type ServeResult,
} from "../frontend/serve-frontends.js";
import type { InputValues, OutputArrays } from "../in-process/in-process-tensors.js";
import { inferByName } from "../in-process/infer-in-process.js";
import { callModels } from "../in-process/stream-in-process.js";
import type { ModelControl } from "../instance/backend.js";
import { createRateLimiter, MachinePlan } from "../instance/machine-plan.js";
import { CallGraph, type ModelPlan, type ModelServer, sharedByAll } from "../model/model-server.js";
import { ModelVersion } from "../model/model-version.js";
import { ModelRegistry } from "../model/registry.js";
import { ResidentModels } from "../model/resident-models.js";
import { createLog, type OpenLog } from "../observe/create-log.js";
import type { Log } from "../observe/log.js";
import { GpuMetrics } from "../observe/machine-metrics.js";
import { DEFAULT_METRICS_CONFIG } from "../observe/metric-families.js";
import { METRICS_REPORT_OPTION_TYPES, MetricsPage } from "../observe/metrics-page.js";
import type { CacheUsage } from "../observe/model-families.js";
import { Tracing } from "../observe/tracing.js";
import { ModelRepository, type StartUp } from "../repository/model-repository.js";
import type { LoadParameters, UnloadParameters } from "../repository/repository-options.js";
import { RequestMemory } from "../request/request-memory.js";
import type { Rollout, RolloutOptions, Rollouts } from "../rollout/index.js";
import { ShareLedger } from "../scheduler/fair-shares.js";
import type { SchedulingTape } from "../scheduler/scheduling-tape.js";
import { createAuthentication } from "../service/access-control.js";
import type { InferenceService } from "../service/inference-service.js";
import { LocalService } from "../service/local-service.js";
import { saysReady } from "../service/model-reports.js";
import { meteredModels, ServerInspector } from "../service/server-inspector.js";
import { CudaPools } from "../shared-memory/cuda-pools.js";
import { type Clock, realClock, settledWithin, sleep } from "../system/clock.js";
import { type HostPolicies, hostPolicyWarnings } from "../system/host-policy.js";
import { DEFAULT_SERVE_OPTIONS, TRITON_OPTION_TYPES, type TritonOptions } from "./triton-options.js";

/**
 * An inference server inside this process. Bind models, call them in process, and open them to clients with `serve()`.
 *
 * @example
 * ```ts
 * await using triton = new Triton();
 * const double = triton.bind({
 *   modelName: "double",
 *   inputs: [{ name: "x", dtype: "FP32", shape: [-1] }],
 *   outputs: [{ name: "y", dtype: "FP32", shape: [-1] }],
 *   inferFunc: sample(({ x }) => ({ y: x.data.map((value) => 2 * value) })),
 * });
 * const { y } = await double.infer({ x: [1, 2, 3] });
 * await triton.serve();
 * ```
 */
export class Triton implements AsyncDisposable {
  readonly #server: TritonServer;

  /** @throws TritonError INVALID_ARG for unknown options, and for values that an option cannot have. */
  constructor(options: TritonOptions = {}) {
    assertOptions("new Triton()", options, TRITON_OPTION_TYPES);
    assertOptions("metrics of new Triton()", options.metrics ?? {}, METRICS_REPORT_OPTION_TYPES);
    this.#server = new TritonServer(options);
  }

  /**
   * Registry of all metrics: those of the server (`nv_*`, `tritonjs_*`), of its models, and of the program. It is the
   * registry of the option `metrics`, if one is given. `await triton.metrics.metrics()` is the text of a scrape. Metrics
   * that are registered here appear on the metrics page too.
   *
   * @example `new Counter({ name: "words_total", help: "Words seen", registers: [triton.metrics] })`
   */
  get metrics(): Registry {
    return this.#server.metrics.registry;
  }

  /**
   * Access token for the restricted endpoints. Clients send it with their option `accessToken`, or in the header
   * `triton-access-token`. It comes from `security.accessToken`, or is generated for this `Triton`. Undefined when no
   * endpoint is restricted.
   */
  get accessToken(): string | undefined {
    return this.#server.accessToken;
  }

  /** The v2 operations over all models. Frontends call them. */
  get service(): InferenceService {
    return this.#server.service;
  }

  /**
   * Puts a model into service. Its instances load in the background: `infer` and `serve` wait for them. The handle is
   * typed by `inputs` and `outputs`, or without them by the entry of `TritonModels` that `tritonjs types` writes for a
   * model file.
   *
   * @throws TritonError INVALID_ARG that lists every problem of the binding, NOT_FOUND for a missing model file,
   * UNAVAILABLE after `close`.
   */
  bind<
    const I extends TensorSpecs,
    const O extends TensorSpecs,
    const M extends string = string,
    N extends PropertyKey = never,
  >(
    options: BindOptions<I, O, BoundFunc<NamedInputs<I>, NamedOutputs<O>, N>> & { readonly modelName: M },
  ): ModelHandle<BoundInputs<M, I>, BoundOutputs<M, O>, M>;
  /** Binds one function for each instance. */
  bind<
    const I extends TensorSpecs,
    const O extends TensorSpecs,
    const M extends string = string,
    N extends PropertyKey = never,
  >(
    options: BindOptions<I, O, readonly BoundFunc<NamedInputs<I>, NamedOutputs<O>, N>[]> & {
      readonly modelName: M;
    },
  ): ModelHandle<BoundInputs<M, I>, BoundOutputs<M, O>, M>;
  /** Binds a module, a backend, or any of the forms. */
  bind<
    const I extends TensorSpecs,
    const O extends TensorSpecs,
    const M extends string = string,
    N extends PropertyKey = never,
  >(
    options: BindOptions<I, O, InferFuncOption<I, O, N>> & { readonly modelName: M },
  ): ModelHandle<BoundInputs<M, I>, BoundOutputs<M, O>, M>;
  /** Binds a method decorated with `@batch` or `@sample`. */
  bind<const I extends TensorSpecs, const O extends TensorSpecs, A, R, const M extends string = string>(
    options: BindMethodOptions<I, O, A, R> & { readonly modelName: M },
  ): ModelHandle<NamedInputs<I>, NamedOutputs<O>, M>;
  bind<const I extends readonly TensorSpec[], const O extends readonly TensorSpec[], M extends string>(
    options: unknown,
  ): ModelHandle<I, O, M> {
    this.#server.assertOpen();
    const plan = planBinding(
      options as AnyBindOptions,
      (name, version) => this.#isTaken(name, version),
      this.#server.models.gpus,
      planModule,
    );
    const { gpus } = this.#server.models;
    return this.#add<I, O, M>(plan, replanBinding(options as AnyBindOptions, gpus, planModule));
  }

  /**
   * Puts an ensemble into service: a graph of models. Tensors pass from one model to the next without a copy. Steps
   * that do not depend on each other run at the same time. The models may be bound later: the ensemble is ready while
   * all of them are.
   *
   * @throws TritonError INVALID_ARG that lists every problem of the graph and of the members that are bound,
   * UNAVAILABLE after `close`.
   * @example
   * ```ts
   * const classify = triton.bindEnsemble({
   *   modelName: "classify",
   *   inputs: [{ name: "text", dtype: "BYTES", shape: [1] }],
   *   outputs: [{ name: "scores", dtype: "FP32", shape: [-1] }],
   *   steps: [
   *     { modelName: "tokenize", inputMap: { text: "text" }, outputMap: { ids: "ids" } },
   *     { modelName: "bert", inputMap: { input_ids: "ids" }, outputMap: { logits: "scores" } },
   *   ],
   * });
   * const { scores } = await classify.inferSample({ text: ["hello"] });
   * ```
   */
  bindEnsemble<
    const I extends readonly TensorSpec[],
    const O extends readonly TensorSpec[],
    const M extends string = string,
  >(options: BindEnsembleOptions<I, O> & { readonly modelName: M }): ModelHandle<I, O, M> {
    this.#server.assertOpen();
    const { memberOf } = this.#server.registry;
    const has = (name: string, version: number) => this.#isTaken(name, version);
    return this.#add<I, O, M>(planEnsemble(options, { memberOf, has }), ensembleStays(options.modelName));
  }

  /**
   * Infers with a model by name. Tensors have the batch axis if the model has one. Inputs and outputs are typed for the
   * models of `TritonModels`, which `tritonjs types` fills.
   *
   * @param options `modelVersion` defaults to the highest version that is ready
   * @throws TritonError NOT_FOUND for an unknown model; otherwise as {@link ModelHandle.infer}.
   */
  async infer<const M extends string>(
    modelName: M,
    inputs: InputsOfModel<M, InputValues>,
    options: InferOptions & { readonly modelVersion?: number } = {},
  ): Promise<OutputsOfModel<M, OutputArrays>> {
    const outputs = await inferByName(this.#server, modelName, inputs as InputValues, options);
    return outputs as OutputsOfModel<M, OutputArrays>;
  }

  /**
   * Replaces a version of a model by another, little by little. Requests that name no version are divided among both:
   * those of `triton.infer`, of clients, and of ensembles. Resolves when the rollout has started, once both versions are
   * loaded.
   *
   * @throws TritonError INVALID_ARG for options that are not valid, for a version that is not in service, and for two
   * versions with different inputs or outputs; ALREADY_EXISTS for a model with a rollout that is not over.
   * @example
   * ```ts
   * const rollout = await triton.rollout("resnet", {
   *   from: 1,
   *   to: 2,
   *   key: "header:x-user",
   *   steps: [
   *     { share: 1, forSeconds: 600 },
   *     { share: 25, forSeconds: 3600 },
   *   ],
   *   shadow: { every: 10 },
   * });
   * rollout.onEvent(({ type, reason }) => console.log(type, reason));
   * ```
   */
  async rollout(modelName: string, options: RolloutOptions): Promise<Rollout> {
    this.#server.assertOpen();
    return (await this.#server.rollouts()).start(modelName, options);
  }

  /**
   * Loads or reloads a model of the repository. Resolves when the model is in service and the instances that it no
   * longer has are released. The old version serves until the new one is ready, and keeps serving if loading fails.
   *
   * @throws TritonError UNAVAILABLE unless `modelControlMode` is "explicit", INTERNAL for a model that does not exist
   * or has a bad configuration (`cause` has the details), INVALID_ARG for a version that fails to load.
   * @example `await triton.loadModel("resnet", { config: JSON.stringify({ max_batch_size: 16 }) })`
   */
  async loadModel(name: string, parameters: LoadParameters = {}): Promise<void> {
    this.#server.assertOpen();
    await this.#server.startUp.over;
    await (await this.#server.repository.loadModel(name, parameters)).removed;
  }

  /**
   * Takes a model of the repository out of service. Resolves when its requests are answered and its instances are
   * released.
   *
   * @throws TritonError UNAVAILABLE unless `modelControlMode` is "explicit".
   */
  async unloadModel(name: string, parameters: UnloadParameters = {}): Promise<void> {
    this.#server.assertOpen();
    await this.#server.startUp.over;
    await (await this.#server.repository.unloadModel(name, parameters)).ended;
  }

  /**
   * Adds a directory of models, which load on request: `loadModel`, or a client's.
   *
   * @param modelNames other names for its models, by the names of their directories. The names in their configurations
   * do not count then
   * @throws TritonError UNAVAILABLE unless `modelControlMode` is "explicit", INVALID_ARG for a directory that does not
   * exist, ALREADY_EXISTS for one that is registered.
   * @example `await triton.registerModelRepository("/uploads/7", { model: "resnet-7" })`
   */
  async registerModelRepository(
    path: string,
    modelNames: Readonly<Record<string, string>> = {},
  ): Promise<void> {
    this.#server.assertOpen();
    await this.#server.repository.register(path, modelNames);
  }

  /**
   * Removes a directory that `registerModelRepository` added. Its models that are in service stay so until they are
   * unloaded.
   *
   * @throws TritonError UNAVAILABLE unless `modelControlMode` is "explicit", INVALID_ARG if it is not registered.
   */
  unregisterModelRepository(path: string): void {
    this.#server.assertOpen();
    this.#server.repository.unregister(path);
  }

  /**
   * Resolves when all bound models, and all models that the repository loads at the start, are in service.
   *
   * @throws TritonError that names each model that failed to load, and the reason. Without `exitOnError`, it leaves out
   * the models of the repository.
   */
  async ready(): Promise<void> {
    await this.#server.ready();
  }

  /**
   * Waits for all models, then opens the frontends. Without `frontends`, it opens those of the installed packages: HTTP
   * on port 8000, gRPC on 8001, metrics on 8002, on this machine only. Settings that `TritonOptions` lacks are given to
   * the frontends themselves: `serve({ frontends: [http({ tls }), grpc({ reflection: true })] })`.
   *
   * @throws TritonError when a model failed to load or a port is taken. Then no frontend stays open. INVALID_ARG for
   * an unknown option, UNAVAILABLE with the reason PACKAGE_NOT_INSTALLED if threads are wanted without
   * `@tritonjs/core/frontend-threads`, and UNSUPPORTED if they are wanted on macOS or Windows.
   */
  async serve(
    options: {
      readonly frontends?: readonly Frontend[];
      /**
       * Worker threads that run the HTTP and gRPC frontends: they accept connections, decode requests and encode
       * answers, and the models stay in this thread. With "auto", the number follows the number of cores: 0 for fewer
       * than four, then half of them, at most 3. @default 0
       */
      readonly frontendThreads?: FrontendThreads;
    } = {},
  ): Promise<ServeResult> {
    const { frontends, frontendThreads = 0 } = options;
    assertOptions(
      "serve()",
      options,
      { frontends: "array", frontendThreads: "any" },
      {
        "new Triton()": TRITON_OPTION_TYPES,
      },
    );
    checkFrontendThreads(frontendThreads);
    return this.#server.serve(frontends, frontendThreads);
  }

  /**
   * Drains and stops the server, after `exitDelaySecs`. It is no longer ready, and its frontends refuse new requests. Requests in flight
   * finish, for at most `exitTimeoutSecs`. Then the instances are released. Calling it twice is harmless.
   */
  close(): Promise<void> {
    return this.#server.close();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  #add<I extends readonly TensorSpec[], O extends readonly TensorSpec[], M extends string>(
    plan: ModelPlan,
    replan: (change: RebindOptions) => ModelPlan,
  ): ModelHandle<I, O, M> {
    const model = this.#server.models.create(plan);
    this.#server.registry.add(model);
    this.#server.repository.recheckDependencies();
    return modelHandle<I, O, M>(model, this.#server, replan);
  }

  #isTaken(name: string, version: number): boolean {
    return this.#server.registry.has(name, version) || this.#server.repository.has(name);
  }
}

/** A server: makes its parts, opens its frontends, and closes everything in order. */
class TritonServer {
  readonly registry: ModelRegistry;
  readonly models: ModelsOfServer;
  readonly repository: ModelRepository;
  readonly startUp: StartUp;
  readonly service: LocalService;
  readonly metrics: MetricsPage;
  /** Token that clients send to use restricted endpoints. */
  readonly accessToken: string | undefined;
  readonly drainTimeoutMs: number;
  readonly #log: OpenLog;
  #rollouts: Promise<Rollouts> | undefined;
  #frontends: readonly Frontend[] = [];
  #serving: Promise<ServeResult> | undefined;
  #closing: Promise<void> | undefined;

  /** Loading the models of its repository begins. */
  constructor(private readonly options: TritonOptions) {
    // Models of all kinds may run ONNX Runtime: Python models, JavaScript models, callbacks.
    disableTelemetry();
    const security = resolveSecurity(options.security);
    this.accessToken = security.accessToken;
    this.drainTimeoutMs = (options.exitTimeoutSecs ?? 30) * 1000;
    this.#log = createLog(options);
    const { log } = this.#log;
    const registry = new ModelRegistry(options.modelNamespacing);
    this.registry = registry;
    const models = new ModelsOfServer(
      options,
      registry,
      log.of("model_lifecycle"),
      () => this.metrics.registry,
    );
    this.models = models;
    const requestMemory = new RequestMemory(options.requestMemory);
    const { allowGpuMetrics = true, metricsIntervalMs = 2000 } = options;
    const hasGpus = allowGpuMetrics && options.gpus?.length !== 0;
    this.metrics = new MetricsPage(
      {
        models: () => meteredModels(registry),
        allowCpuMetrics: options.allowCpuMetrics,
        cuda: models.cuda,
        residents: models.residents,
        metricsConfig: options.metricsConfig,
        gpus: hasGpus ? new GpuMetrics(metricsIntervalMs, log.of("metrics")) : undefined,
        memory: requestMemory,
        tracing: models.tracing,
        cache: models.cacheUsage() === undefined ? undefined : () => models.cacheUsage(),
        cacheGuard: models.responseCache,
        repository: () => repository.failures(),
      },
      options.metrics,
    );
    const authentication = createAuthentication(options.security, log.of("access_control"));
    const repository = new ModelRepository(options, models);
    this.repository = repository;
    this.startUp = repository.startUp;
    models.control = {
      // A model does not wait for removed instances, because it may run on one of them.
      load: async (name, given) => void (await repository.loadModel(name, given)),
      unload: async (name, given) => void (await repository.unloadModel(name, given)),
      isReady: async (name, version) => {
        const ready = registry.ready(name).filter((one) => version === "" || String(one.version) === version);
        const latest = ready.at(-1);
        return latest !== undefined && saysReady(latest, log, true);
      },
    };
    models.onRollout = ({ name, namespace = "", config }) => {
      void this.rollouts().then((rollouts) => rollouts.configured(name, namespace, config.parameters));
    };
    // The rest throws no error, so the registry of the program keeps no metrics of a server that failed.
    this.metrics.open();
    const inspector = new ServerInspector({
      registry,
      modelControlMode: options.modelControlMode ?? "none",
      cacheUsage: () => models.cacheUsage(),
      tape: models.tape,
      async changeInstances(model, count) {
        const check = model.plan.instanceProblems ?? (() => []);
        await model.updateInstances(changedGroups(count, model.config, models.gpus, check));
      },
    });
    this.service = new LocalService(
      options,
      models,
      repository,
      this.metrics,
      requestMemory,
      security,
      authentication,
      inspector,
      () => this.rollouts(),
    );
    if (options.rolloutDirectory !== undefined) {
      void this.rollouts().then((rollouts) => rollouts.resume());
    }
  }

  /** The rollouts of the server. Their code is loaded when the first one starts. */
  rollouts(): Promise<Rollouts> {
    this.#rollouts ??= import("../rollout/index.js").then(({ Rollouts }) => {
      const rollouts = new Rollouts({
        registry: this.registry,
        clock: this.models.clock,
        log: this.#log.log.of("rollout"),
        directory: this.options.rolloutDirectory,
        addMetrics: (families) => this.metrics.add(families),
      });
      this.service.inspector.rollouts = () => rollouts.reports();
      return rollouts;
    });
    return this.#rollouts;
  }

  /** @throws TritonError UNAVAILABLE after `close` */
  assertOpen(): void {
    if (this.#closing !== undefined)
      throw errorFor("SERVER_STOPPING", "cannot use this Triton: it has been closed");
  }

  /** Resolves when all bound models, and all models that the repository loads at the start, are in service. */
  async ready(): Promise<void> {
    await Promise.all([this.startUp.succeeded(), this.models.tracing?.ready()]);
    await this.registry.allReady();
  }

  async serve(given: readonly Frontend[] | undefined, threads: FrontendThreads): Promise<ServeResult> {
    this.assertOpen();
    if (this.#serving !== undefined) {
      throw new TritonError("ALREADY_EXISTS", "serve() has already been called");
    }
    const serving = this.#open(given, threads);
    this.#serving = serving;
    serving.catch(() => {
      this.#serving = undefined;
    });
    return serving;
  }

  /** Drains the server and releases its resources. A second call waits for the first. */
  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #open(given: readonly Frontend[] | undefined, threads: FrontendThreads): Promise<ServeResult> {
    await this.ready();
    const chosen = given ?? (await loadDefaultFrontends({ ...DEFAULT_SERVE_OPTIONS, ...this.options }));
    this.#frontends = await placeFrontends(chosen, threads, this.#log.log.of("frontend_threads"));
    const { addresses } = await openFrontends(this.#frontends, this.service);
    // Those in threads are opened last.
    return { addresses: Object.fromEntries(chosen.map(({ name }) => [name, addresses[name]!])) };
  }

  async #close(): Promise<void> {
    await this.#serving?.catch(() => {});
    const { service, repository, models, metrics, drainTimeoutMs } = this;
    const { clock, tracing } = models;
    // The server is not ready in this time, and still accepts requests.
    const exitDelayMs = (this.options.exitDelaySecs ?? 0) * 1000;
    if (exitDelayMs > 0) {
      service.leave();
      for (const frontend of this.#frontends) frontend.leave?.();
      await sleep(clock, exitDelayMs);
      await Promise.all(this.#frontends.map((frontend) => frontend.settle?.()));
    }
    service.drain();
    await (await this.#rollouts)?.close();
    await settledWithin(clock, drainTimeoutMs, repository.close());
    await this.#windDown();
    service.end();
    await settledWithin(clock, drainTimeoutMs, repository.dispose());
    await models.close();
    if (tracing !== undefined) await settledWithin(clock, drainTimeoutMs, tracing.close());
    service.sharedMemory.close();
    metrics.close();
    this.#log.close();
  }

  async #windDown(): Promise<void> {
    const { clock } = this.models;
    const models = this.registry.models();
    const deadline = clock.now() + this.drainTimeoutMs;
    // Waits for all models at the same time, because the requests of one may call another.
    const finished = Promise.all(models.map((model) => model.finish()));
    await Promise.all([
      ...this.#frontends.map((frontend) => frontend.stop(this.drainTimeoutMs)),
      settledWithin(clock, this.drainTimeoutMs, finished),
    ]);
    const leftMs = Math.max(0, deadline - clock.now());
    await Promise.all(models.map((model) => model.unload(leftMs)));
  }
}

/** Makes model versions from their own parts and the parts that the server shares among all of them. */
class ModelsOfServer {
  readonly clock: Clock;
  readonly gpus: Gpus;
  readonly hostPolicies: HostPolicies;
  readonly tracing: Tracing | undefined;
  readonly cuda: CudaPools;
  readonly residents: ResidentModels;
  readonly tape: SchedulingTape | undefined;
  /** Loads and unloads models of the repository, once the repository exists. */
  control: ModelControl | undefined;
  /** Called with a model whose configuration has a rollout. */
  onRollout: ((model: ModelPlan) => void) | undefined;
  readonly #shared: ModelServer;
  /** How callers share all models together. */
  readonly #shares: ShareOptions | undefined;
  readonly #ledger = new ShareLedger();

  /**
   * @param log log of the models
   * @param metrics registry for metrics that models define themselves
   */
  constructor(
    options: TritonOptions,
    readonly registry: ModelRegistry,
    readonly log: Log,
    metrics: () => Registry,
  ) {
    const { responseCache: cache, hostPolicies = {}, shares } = options;
    checkShares(shares);
    this.#shares = shares;
    this.hostPolicies = hostPolicies;
    for (const warning of hostPolicyWarnings(hostPolicies)) process.emitWarning(warning, "TritonWarning");
    this.clock = options.clock ?? realClock;
    const gpus = options.gpus === undefined ? new MachineGpus(log.of("gpus")) : listedGpus(options.gpus);
    this.gpus = options.gpuFallback === "cpu" ? new GpusOrCpu(gpus, log.of("gpus")) : gpus;
    this.cuda = new CudaPools(options, log.of("memory"));
    const { trace, tracer } = options;
    this.tracing =
      trace === undefined && tracer === undefined
        ? undefined
        : new Tracing(trace ?? {}, this.clock, log.of("tracer"), tracer);
    const tape = options.schedulingTape;
    this.tape = tape;
    const { rateLimit = "off", rateLimitResources = [] } = options;
    const rateLimiter = createRateLimiter(
      rateLimit,
      rateLimitResources,
      log.of("rate_limiter"),
      tape?.limiterClock(this.clock) ?? this.clock,
    );
    this.residents = new ResidentModels(options, this.clock, log.of("residency"));
    this.#shared = {
      clock: this.clock,
      tracing: this.tracing,
      responseCache:
        cache &&
        new GuardedCache(
          "byteSize" in cache ? new MemoryCache(cache.byteSize, this.clock) : cache,
          this.clock,
        ),
      rateLimiter,
      tape,
      hostPolicies,
      holdUntil: options.delayScheduler ?? (Number(process.env.TRITONSERVER_DELAY_SCHEDULER) || 0),
      backlogHoldUntil:
        options.backlogDelayScheduler ?? (Number(process.env.TRITONSERVER_BACKLOG_DELAY_SCHEDULER) || 0),
      findMember: (name, version, namespace) => registry.findMember(name, version, namespace),
      callModels: callModels(registry),
      calls: new CallGraph(rateLimiter instanceof MachinePlan ? rateLimiter : undefined),
      log,
      metrics,
      cuda: this.cuda,
      residents: this.residents,
      adapt: (plan) => this.#adapt(plan),
      metricsConfig: { ...DEFAULT_METRICS_CONFIG, ...options.metricsConfig },
    };
    const { holdUntil, backlogHoldUntil } = this.#shared;
    tape?.begin({ rateLimit, rateLimitResources, holdUntil, backlogHoldUntil });
  }

  create(plan: ModelPlan): ModelVersion {
    return new ModelVersion(this.#adapt(plan), { ...this.#shared, control: this.control });
  }

  #adapt(given: ModelPlan): ModelPlan {
    const plan = this.#shares === undefined ? given : sharedByAll(given, this.#shares, this.#ledger);
    if (plan.config.parameters.rollout_to !== undefined) this.onRollout?.(plan);
    return plan;
  }

  get responseCache(): GuardedCache | undefined {
    return this.#shared.responseCache;
  }

  /** Usage of the response cache. Undefined without a cache, or if the cache does not report its usage. */
  cacheUsage(): CacheUsage | undefined {
    return this.#shared.responseCache?.usage();
  }

  /** Releases the shared parts, after the last model has been taken out of service. */
  async close(): Promise<void> {
    this.residents.close();
    try {
      await this.#shared.responseCache?.close();
    } catch (error) {
      process.emitWarning(`cannot close the response cache: ${String(error)}`, "TritonWarning");
    }
    await this.tape?.end();
  }
}
