import type { InferOptions, TensorSpec } from "@tritonjs/protocol";
import type { Registry } from "prom-client";
import type { BindEnsembleOptions } from "./binding/bind-ensemble-options.js";
import type { BindMethodOptions, BindOptions } from "./binding/bind-options.js";
import { handleOfBinding } from "./binding/binding-handle.js";
import type { ModelHandle } from "./binding/model-handle.js";
import { type Binding, planBinding } from "./binding/plan-binding.js";
import { planEnsemble } from "./binding/plan-ensemble.js";
import type { InputsOfModel, OutputsOfModel } from "./callable/triton-models.js";
import type { InputValues, OutputArrays } from "./calling/in-process-tensors.js";
import { inferByName } from "./calling/infer-by-name.js";
import type { Frontend } from "./frontend/frontend.js";
import { promClient } from "./observe/prom-client.js";
import type { LoadParameters, UnloadParameters } from "./repository/load-parameters.js";

import type { ServeResult } from "./server/open-frontends.js";
import { ServerLifetime } from "./server/server-lifetime.js";
import { assembleServer, type ServerParts } from "./server/server-parts.js";
import { DEFAULT_SERVE_OPTIONS, type TritonOptions } from "./server/triton-options.js";
import type { InferenceService } from "./service/inference-service.js";

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
  #metrics: Registry | undefined;
  readonly #parts: ServerParts;
  readonly #lifetime: ServerLifetime;
  readonly #drainTimeoutMs: number;

  constructor(options: TritonOptions = {}) {
    this.#drainTimeoutMs = (options.exitTimeoutSecs ?? 30) * 1000;
    this.#parts = assembleServer(options, () => this.metrics);
    const serveOptions = { ...DEFAULT_SERVE_OPTIONS, ...options };
    this.#lifetime = new ServerLifetime(this.#parts, serveOptions, this.#drainTimeoutMs);
  }

  /**
   * Metrics of your own: what is registered here is on the metrics page too.
   *
   * @example `new Counter({ name: "words_total", help: "Words seen", registers: [triton.metrics] })`
   */
  get metrics(): Registry {
    this.#metrics ??= new (promClient().Registry)();
    return this.#metrics;
  }

  /**
   * What clients send to use the restricted endpoints: their option `accessToken`, or the header
   * `triton-access-token`. Given with `security.accessToken`, or made for this `Triton`; undefined when nothing is
   * restricted.
   */
  get accessToken(): string | undefined {
    return this.#parts.accessToken;
  }

  /** The v2 operations over all models: what frontends call. */
  get service(): InferenceService {
    return this.#parts.service;
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
    this.#lifetime.assertOpen();
    const binding = planBinding(
      options as BindOptions<readonly TensorSpec[], readonly TensorSpec[]>,
      (name, version) => this.#isTaken(name, version),
      this.#parts.models.gpus,
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
    this.#lifetime.assertOpen();
    const { memberOf } = this.#parts.registry;
    const has = (name: string, version: number) => this.#isTaken(name, version);
    return this.#add<I, O>(planEnsemble(options, { memberOf, has }));
  }

  /**
   * Infers with a model by name: with the batch axis when it has one. Inputs and outputs are typed for the models of
   * `TritonModels`, which `tritonjs types` fills.
   *
   * @param options `modelVersion` is the highest that is ready unless given
   * @throws TritonError NOT_FOUND for an unknown model, and as {@link ModelHandle.infer}.
   */
  async infer<const M extends string>(
    modelName: M,
    inputs: InputsOfModel<M, InputValues>,
    options: InferOptions & { readonly modelVersion?: number } = {},
  ): Promise<OutputsOfModel<M, OutputArrays>> {
    const outputs = await inferByName(this.#parts, modelName, inputs as InputValues, options);
    return outputs as OutputsOfModel<M, OutputArrays>;
  }

  /**
   * Loads a model of the repository, or loads it again; resolves when it is in service and the instances that it does not
   * have any more are released. What is in service goes on until the new version is ready, and stays when that fails.
   *
   * @throws TritonError UNAVAILABLE unless `modelControlMode` is "explicit", INTERNAL for a model that is not there or
   * has a bad configuration (`cause` says what), INVALID_ARG for a version that fails to load.
   * @example `await triton.loadModel("resnet", { config: JSON.stringify({ max_batch_size: 16 }) })`
   */
  async loadModel(name: string, parameters: LoadParameters = {}): Promise<void> {
    this.#lifetime.assertOpen();
    await this.#parts.startUp.over;
    await (await this.#parts.repository.loadModel(name, parameters)).removed;
  }

  /**
   * Takes a model of the repository out of service; resolves when its requests are answered and its instances gone.
   *
   * @throws TritonError UNAVAILABLE unless `modelControlMode` is "explicit".
   */
  async unloadModel(name: string, parameters: UnloadParameters = {}): Promise<void> {
    this.#lifetime.assertOpen();
    await this.#parts.startUp.over;
    await (await this.#parts.repository.unloadModel(name, parameters)).ended;
  }

  /**
   * Resolves when all models that were bound or that the repository loads at the start are in service.
   *
   * @throws TritonError that names each model that failed to load, and why (not of the repository without `exitOnError`).
   */
  async ready(): Promise<void> {
    await this.#parts.startUp.succeeded();
    await this.#parts.registry.allReady();
  }

  /**
   * Waits for all models, then opens the frontends: those given, or those of the installed packages (HTTP on
   * port 8000, gRPC on 8001, metrics on 8002, on this machine only). What the options of `Triton` do not
   * say of them is said to the frontends themselves: `serve({ frontends: [http({ tls }), grpc({ reflection: true })] })`.
   *
   * @throws TritonError when a model failed to load or a port is taken; then nothing stays open.
   */
  async serve(options: { readonly frontends?: readonly Frontend[] } = {}): Promise<ServeResult> {
    return this.#lifetime.serve(options.frontends, () => this.ready());
  }

  /**
   * Stops: no longer ready, frontends refuse new requests, those at hand finish (for `exitTimeoutSecs` at most),
   * instances are released. Calling it twice is harmless.
   */
  close(): Promise<void> {
    return this.#lifetime.close();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  #add<const I extends readonly TensorSpec[], const O extends readonly TensorSpec[]>(
    binding: Binding,
  ): ModelHandle<I, O> {
    const { registry, repository, models } = this.#parts;
    const model = models.create(binding);
    registry.add(model);
    repository.boundModelCame();
    const { clock, gpus } = models;
    const rest = { gpus, drainTimeoutMs: this.#drainTimeoutMs };
    return handleOfBinding<I, O>(model, binding, { registry, clock, ...rest });
  }

  #isTaken(name: string, version: number): boolean {
    return this.#parts.registry.has(name, version) || this.#parts.repository.has(name);
  }
}
