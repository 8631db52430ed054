import {
  assertOptions,
  errorFor,
  type InferOptions,
  type NamedInputs,
  type NamedOutputs,
  optionTypes,
  type TensorSpec,
  type TensorSpecs,
} from "@tritonjs/protocol";
import type {
  AnyBindOptions,
  BindEnsembleOptions,
  BindOptions,
  BoundFunc,
  BoundInputs,
  BoundOutputs,
  InferFuncOption,
  RebindOptions,
} from "../bind/bind-options.js";
import { type ModelHandle, modelHandle } from "../bind/model-handle.js";
import { ensembleStays, planBinding, planEnsemble, replanBinding } from "../bind/plan-binding.js";
import type { PlanModule } from "../bind/plan-executors.js";
import { type Gpus, NO_GPUS } from "../config/gpus.js";
import type { InputValues, OutputArrays } from "../in-process/in-process-tensors.js";
import { inferByName } from "../in-process/infer-in-process.js";
import { callModels } from "../in-process/stream-in-process.js";
import { CallGraph, type ModelPlan, type ModelServer } from "../model/model-server.js";
import { ModelVersion } from "../model/model-version.js";
import { ModelRegistry } from "../model/registry.js";
import { Log, type Logger } from "../observe/log.js";
import { DEFAULT_METRICS_CONFIG } from "../observe/metric-families.js";
import { realClock, settledWithin } from "../system/clock.js";

/** Options of {@link WebTriton}. */
export interface WebTritonOptions {
  /** Destination of log lines; only warnings and errors go to the console unless given. */
  readonly logger?: Logger;
  /** Seconds that `close` waits for requests in flight. @default 30 */
  readonly exitTimeoutSecs?: number;
}

const OPTION_TYPES = optionTypes<WebTritonOptions>({ logger: "object", exitTimeoutSecs: "number" });

const NO_REPOSITORY = { underWay: false, over: Promise.resolve() };

/** Severities that a page shows when nobody has chosen a logger. */
const QUIET: Logger = {
  error: (message) => console.error(message),
  warn: (message) => console.warn(message),
  info() {},
  debug() {},
};

/**
 * The serving core where there is only the web platform: a page, a web worker, a worker at the edge. Models are bound and
 * called as with `Triton`, and callers that call in one event share a batch.
 *
 * @example
 * ```ts
 * const triton = new WebTriton();
 * const double = triton.bind({
 *   modelName: "double",
 *   inputs: [{ name: "x", dtype: "FP32", shape: [1] }],
 *   outputs: [{ name: "y", dtype: "FP32", shape: [1] }],
 *   inferFunc: batch(({ x }) => ({ y: x.data.map((value) => 2 * value) })),
 * });
 * const { y } = await double.inferSample({ x: [2] });
 * ```
 */
export class WebTriton implements AsyncDisposable {
  /** @internal */
  readonly registry = new ModelRegistry();
  /** @internal */
  readonly log: Log;
  /** @internal */
  readonly gpus: Gpus = NO_GPUS;
  /** @internal */
  readonly drainTimeoutMs: number;
  readonly #server: ModelServer;
  #closing: Promise<void> | undefined;

  /** @throws TritonError INVALID_ARG for unknown options */
  constructor(options: WebTritonOptions = {}) {
    assertOptions("new WebTriton()", options, OPTION_TYPES);
    const { registry } = this;
    this.drainTimeoutMs = (options.exitTimeoutSecs ?? 30) * 1000;
    this.log = new Log(options.logger ?? QUIET, {}, options.logger !== undefined);
    this.#server = {
      clock: realClock,
      hostPolicies: {},
      holdUntil: 0,
      backlogHoldUntil: 0,
      findMember: (name, version, namespace) => registry.findMember(name, version, namespace),
      callModels: callModels(registry),
      calls: new CallGraph(),
      log: this.log,
      metrics: () => {
        throw errorFor(
          "PLATFORM_NOT_SUPPORTED",
          "metrics of a model: expected a Triton of Node, got a WebTriton",
        );
      },
      metricsConfig: DEFAULT_METRICS_CONFIG,
    };
  }

  /**
   * Puts a model into service, as `Triton.bind` does.
   *
   * @throws TritonError INVALID_ARG that lists every problem of the binding, UNAVAILABLE after `close`
   */
  bind<
    const I extends TensorSpecs,
    const O extends TensorSpecs,
    const M extends string = string,
    N extends PropertyKey = never,
  >(
    options: BindOptions<I, O, BoundFunc<NamedInputs<I>, NamedOutputs<O>, N>> & { readonly modelName: M },
  ): ModelHandle<BoundInputs<M, I>, BoundOutputs<M, O>, M>;
  /** Binds a backend, or any of the forms. */
  bind<
    const I extends TensorSpecs,
    const O extends TensorSpecs,
    const M extends string = string,
    N extends PropertyKey = never,
  >(
    options: BindOptions<I, O, InferFuncOption<I, O, N>> & { readonly modelName: M },
  ): ModelHandle<BoundInputs<M, I>, BoundOutputs<M, O>, M>;
  bind<const I extends readonly TensorSpec[], const O extends readonly TensorSpec[], M extends string>(
    options: unknown,
  ): ModelHandle<I, O, M> {
    this.assertOpen();
    const isTaken = (name: string, version: number) => this.registry.has(name, version);
    const { gpus } = this;
    const plan = planBinding(options as AnyBindOptions, isTaken, gpus, noModule);
    return this.#add<I, O, M>(plan, replanBinding(options as AnyBindOptions, gpus, noModule));
  }

  /** Puts an ensemble into service, as `Triton.bindEnsemble` does. */
  bindEnsemble<
    const I extends readonly TensorSpec[],
    const O extends readonly TensorSpec[],
    const M extends string = string,
  >(options: BindEnsembleOptions<I, O> & { readonly modelName: M }): ModelHandle<I, O, M> {
    this.assertOpen();
    const { memberOf } = this.registry;
    return this.#add<I, O, M>(
      planEnsemble(options, { memberOf, has: (...model) => this.registry.has(...model) }),
      ensembleStays(options.modelName),
    );
  }

  /** Infers with a model by name. @throws TritonError NOT_FOUND for an unknown model */
  infer(
    modelName: string,
    inputs: InputValues,
    options: InferOptions & { readonly modelVersion?: number } = {},
  ): Promise<OutputArrays> {
    const stopping = this.#closing !== undefined;
    return inferByName(
      { registry: this.registry, startUp: NO_REPOSITORY, stopping },
      modelName,
      inputs,
      options,
    );
  }

  /** Resolves when all models are in service. @throws TritonError that names each model that failed to load */
  ready(): Promise<void> {
    return this.registry.allReady();
  }

  /** Finishes the requests in flight, and releases the models. Calling it twice is harmless. */
  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  /**
   * @internal
   * @throws TritonError UNAVAILABLE after `close`
   */
  assertOpen(): void {
    if (this.#closing !== undefined)
      throw errorFor("SERVER_STOPPING", "cannot use this WebTriton: it has been closed");
  }

  async #close(): Promise<void> {
    const models = this.registry.models();
    const finished = Promise.all(models.map((model) => model.finish()));
    await settledWithin(realClock, this.drainTimeoutMs, finished);
    await Promise.all(models.map((model) => model.unload(this.drainTimeoutMs)));
  }

  #add<I extends readonly TensorSpec[], O extends readonly TensorSpec[], M extends string>(
    plan: ModelPlan,
    replan: (change: RebindOptions) => ModelPlan,
  ): ModelHandle<I, O, M> {
    const model = new ModelVersion(plan, this.#server);
    this.registry.add(model);
    return modelHandle<I, O, M>(model, this, replan);
  }
}

/** Modules need worker threads or processes of Node. */
const noModule: PlanModule = (url) => {
  const text = `inferFunc is the module ${url.href}, which needs a Triton of Node, Bun or Deno: pass a function or a backend`;
  throw errorFor("PLATFORM_NOT_SUPPORTED", text);
};
