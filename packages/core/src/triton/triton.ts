import {
  assertOptions,
  type InferOptions,
  type NamedInputs,
  type NamedOutputs,
  type TensorSpec,
  type TensorSpecs,
} from "@tritonjs/protocol";
import type { Registry } from "prom-client";
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
import { planModule } from "../bind/plan-module.js";
import type { LoadParameters, UnloadParameters } from "../extension/model-source.js";
import type { Frontend, FrontendServer, FrontendThreads } from "../frontend/frontend.js";
import { checkFrontendThreads, type ServeResult } from "../frontend/serve-frontends.js";
import type { InputValues, OutputArrays } from "../in-process/in-process-tensors.js";
import { inferByName } from "../in-process/infer-in-process.js";
import type { ModelPlan } from "../model/model-server.js";
import { METRICS_REPORT_OPTION_TYPES } from "../observe/metrics-page.js";
import { TRITON_OPTION_TYPES, type TritonOptions } from "./triton-options.js";
import { TritonServer } from "./triton-server.js";

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

  /** The server as frontends see it. `serviceOf(triton)` of `@tritonjs/server` has the operations of the protocol. */
  get server(): FrontendServer {
    return this.#server;
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
      this.#server.gpus,
      planModule,
    );
    const { gpus } = this.#server;
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
    await (await this.#server.source.load(name, parameters)).removed;
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
    await (await this.#server.source.unload(name, parameters)).ended;
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
    await this.#server.source.register(path, modelNames);
  }

  /**
   * Removes a directory that `registerModelRepository` added. Its models that are in service stay so until they are
   * unloaded.
   *
   * @throws TritonError UNAVAILABLE unless `modelControlMode` is "explicit", INVALID_ARG if it is not registered.
   */
  unregisterModelRepository(path: string): void {
    this.#server.assertOpen();
    this.#server.source.unregister(path);
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
   * an unknown option, UNAVAILABLE with the reason PACKAGE_NOT_INSTALLED if threads are wanted and cannot share a port,
   * and UNSUPPORTED if they are wanted on macOS or Windows.
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
    this.#server.source.bound();
    return modelHandle<I, O, M>(model, this.#server, replan);
  }

  #isTaken(name: string, version: number): boolean {
    return this.#server.registry.has(name, version) || this.#server.source.has(name);
  }
}
