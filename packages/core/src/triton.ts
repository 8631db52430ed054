import type { BindEnsembleOptions } from "./bind/bind-ensemble-options.js";
import type { BindMethodOptions, BindOptions } from "./bind/bind-options.js";
import { callModels } from "./bind/call-models.js";
import { createHandle } from "./bind/create-handle.js";
import { inferInProcess } from "./bind/in-process.js";
import type { InputValues, OutputArrays } from "./bind/in-process-tensors.js";
import type { InferOptions } from "./bind/infer-options.js";
import type { ModelHandle } from "./bind/model-handle.js";
import { type Binding, planBinding } from "./bind/plan-binding.js";
import { planEnsemble } from "./bind/plan-ensemble.js";
import { memoryCache, type ResponseCache } from "./cache/response-cache.js";
import { type Clock, realClock } from "./clock/clock.js";
import { settledWithin } from "./clock/settled-within.js";
import type { TensorSpec } from "./config/tensor-spec.js";
import { TritonError } from "./errors/triton-error.js";
import { CallGraph } from "./model/call-graph.js";
import { ModelVersion } from "./model/model-version.js";
import { ModelRegistry } from "./model/registry.js";
import { createLog, type OpenLog } from "./observe/log/create-log.js";
import { loadDefaultFrontends } from "./serve/default-frontends.js";
import type { Frontend, FrontendAddress, ServeOptions } from "./service/frontend.js";
import type { InferenceService } from "./service/inference-service.js";
import { LocalService } from "./service/local-service.js";
import { DEFAULT_SERVE_OPTIONS, type TritonOptions } from "./triton-options.js";
import { VERSION } from "./version.js";

/** What `serve` resolves to. */
export interface ServeResult {
  /** Where each frontend listens, by its name: `http`, `grpc`, `metrics`. */
  readonly addresses: Readonly<Record<string, FrontendAddress>>;
}

/**
 * An inference server inside this process. Bind models, call them at once in process, open them to others with
 * `serve()`.
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
  readonly #registry = new ModelRegistry();
  readonly #calls = new CallGraph();
  readonly #service: LocalService;
  readonly #clock: Clock;
  readonly #serveOptions: ServeOptions;
  readonly #drainTimeoutMs: number;
  readonly #holdUntil: number;
  readonly #backlogHoldUntil: number;
  readonly #responseCache: ResponseCache | undefined;
  readonly #log: OpenLog;
  #frontends: readonly Frontend[] = [];
  #serving: Promise<ServeResult> | undefined;
  #closing: Promise<void> | undefined;

  constructor(options: TritonOptions = {}) {
    this.#clock = options.clock ?? realClock;
    this.#serveOptions = { ...DEFAULT_SERVE_OPTIONS, ...options };
    this.#drainTimeoutMs = (options.exitTimeoutSecs ?? 30) * 1000;
    this.#holdUntil = options.delayScheduler ?? (Number(process.env.TRITONSERVER_DELAY_SCHEDULER) || 0);
    this.#backlogHoldUntil =
      options.backlogDelayScheduler ?? (Number(process.env.TRITONSERVER_BACKLOG_DELAY_SCHEDULER) || 0);
    const cache = options.responseCache;
    this.#responseCache = cache !== undefined && "byteSize" in cache ? memoryCache(cache.byteSize) : cache;
    this.#log = createLog(options);
    const identity = { id: options.id ?? "triton", version: VERSION };
    this.#service = new LocalService(this.#registry, identity, this.#log.log);
  }

  /** The v2 operations over the bound models: what frontends call. */
  get service(): InferenceService {
    return this.#service;
  }

  /**
   * Puts a model into service. Its instances load in the background: `infer` and `serve` wait for them.
   *
   * @throws TritonError INVALID_ARG with everything that is wrong with the binding, NOT_FOUND for a missing
   * model file, UNAVAILABLE after `close`.
   */
  bind<const I extends readonly TensorSpec[], const O extends readonly TensorSpec[]>(
    options: BindOptions<I, O>,
  ): ModelHandle<I, O>;
  /** Binds a method decorated with `@batch` or `@sample`. */
  bind<const I extends readonly TensorSpec[], const O extends readonly TensorSpec[]>(
    options: BindMethodOptions<I, O>,
  ): ModelHandle<I, O>;
  bind<const I extends readonly TensorSpec[], const O extends readonly TensorSpec[]>(
    options: BindOptions<I, O> | BindMethodOptions<I, O>,
  ): ModelHandle<I, O> {
    this.#assertOpen();
    const binding = planBinding(
      options as BindOptions<readonly TensorSpec[], readonly TensorSpec[]>,
      (name, version) => this.#registry.has(name, version),
    );
    return this.#add<I, O>(binding);
  }

  /**
   * Puts an ensemble into service: a graph of models, in which tensors go from one to the next without a copy, and
   * steps that do not wait for each other run at the same time. The models may be bound later: the ensemble is ready
   * while all of them are.
   *
   * @throws TritonError INVALID_ARG with everything that is wrong with the graph and with the members that are
   * bound, UNAVAILABLE after `close`.
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
  bindEnsemble<const I extends readonly TensorSpec[], const O extends readonly TensorSpec[]>(
    options: BindEnsembleOptions<I, O>,
  ): ModelHandle<I, O> {
    this.#assertOpen();
    return this.#add<I, O>(planEnsemble(options, this.#registry));
  }

  /**
   * Infers with a model by name: with the batch axis when it has one.
   *
   * @param options `modelVersion` is the highest that is ready unless given
   * @throws TritonError NOT_FOUND for an unknown model, and as {@link ModelHandle.infer}.
   */
  async infer(
    modelName: string,
    inputs: InputValues,
    options: InferOptions & { readonly modelVersion?: number } = {},
  ): Promise<OutputArrays> {
    const { modelVersion, ...rest } = options;
    const version = modelVersion === undefined ? "" : String(modelVersion);
    let values = inputs;
    if (this.#service.stopping) throw new TritonError("UNAVAILABLE", "Server not ready");
    if (this.#registry.isLoading(modelName)) {
      // The caller may change its arrays while this waits.
      values = structuredClone(inputs);
      await this.#registry.loading(modelName);
    }
    return inferInProcess(this.#registry.find(modelName, version), this.#clock, values, rest, "given");
  }

  /**
   * Waits for all models, then opens the frontends: those given, or those of the installed packages (HTTP on
   * port 8000, gRPC on 8001, metrics on 8002, on this machine only).
   *
   * @throws TritonError when a model failed to load or a port is taken; then nothing stays open.
   */
  async serve(options: { readonly frontends?: readonly Frontend[] } = {}): Promise<ServeResult> {
    this.#assertOpen();
    if (this.#serving !== undefined) {
      throw new TritonError("ALREADY_EXISTS", "serve() has been called already");
    }
    const serving = this.#serve(options.frontends);
    this.#serving = serving;
    serving.catch(() => {
      this.#serving = undefined;
    });
    return serving;
  }

  /**
   * Stops: no longer ready, frontends refuse new requests, those at hand finish (for `exitTimeoutSecs` at most),
   * instances are released. Calling it twice is harmless.
   */
  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  async #serve(given: readonly Frontend[] | undefined): Promise<ServeResult> {
    await this.#registry.allReady();
    const frontends = given ?? (await loadDefaultFrontends(this.#serveOptions));
    const addresses: Record<string, FrontendAddress> = {};
    const started: Frontend[] = [];
    try {
      for (const frontend of frontends) {
        started.push(frontend);
        addresses[frontend.name] = await frontend.start(this.#service);
      }
    } catch (error) {
      await Promise.allSettled(started.map((frontend) => frontend.stop(0)));
      throw error;
    }
    this.#frontends = started;
    return { addresses };
  }

  async #close(): Promise<void> {
    await this.#serving?.catch(() => {});
    this.#service.stopping = true;
    const models = this.#registry.all();
    const deadline = this.#clock.now() + this.#drainTimeoutMs;
    // All models first: the work of one may need another.
    const finished = Promise.all(models.map((model) => model.finish()));
    await Promise.all([
      ...this.#frontends.map((frontend) => frontend.stop(this.#drainTimeoutMs)),
      settledWithin(this.#clock, this.#drainTimeoutMs, finished),
    ]);
    const leftMs = Math.max(0, deadline - this.#clock.now());
    await Promise.all(models.map((model) => model.unload(leftMs)));
    this.#log.close();
  }

  #add<const I extends readonly TensorSpec[], const O extends readonly TensorSpec[]>(
    binding: Binding,
  ): ModelHandle<I, O> {
    const model = new ModelVersion({
      ...binding,
      clock: this.#clock,
      responseCache: this.#responseCache,
      holdUntil: this.#holdUntil,
      backlogHoldUntil: this.#backlogHoldUntil,
      findMember: (name, version) => this.#registry.findMember(name, version),
      callModels: callModels(this.#registry, this.#clock),
      calls: this.#calls,
    });
    this.#registry.add(model);
    return createHandle<I, O>(model, this.#clock, async () => {
      await model.unload(this.#drainTimeoutMs);
      this.#registry.remove(model);
    });
  }

  #assertOpen(): void {
    if (this.#closing !== undefined) throw new TritonError("UNAVAILABLE", "this Triton has been closed");
  }
}
