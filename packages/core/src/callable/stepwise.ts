import type { InputsOf, OutputsOf, TensorSpec } from "@tritonjs/protocol";
import type { InferContext, InstanceInfo } from "./infer-context.js";
import { callableStyle, type StyledInferFunc } from "./infer-func.js";

const doneMark = Symbol.for("tritonjs.done");

/** The end of a request of a stepwise callback. Made by {@link done}. */
export interface Done<T> {
  readonly [doneMark]: true;
  /** The last response; undefined for an end without one. */
  readonly outputs: T | undefined;
}

/**
 * What one step means for one request: a response, after which it goes on; nothing yet (`undefined`); its end, made
 * with `done`; or an error, which ends it too.
 */
export type StepResult<O extends readonly TensorSpec[]> =
  | OutputsOf<O>
  | Done<OutputsOf<O>>
  | Error
  | undefined;

/** What {@link stepwise} takes. */
export interface StepwiseModel<I extends readonly TensorSpec[], O extends readonly TensorSpec[], S> {
  /**
   * A request comes: makes what is kept for it from step to step. The tensors are those of one request, without the
   * batch axis. One that takes its time holds nobody up; one that throws ends this request alone. `context` is that
   * of the request, also later: keep it to look at its `signal` or to call other models. On the main thread it runs in
   * the asynchronous context of whoever sent the request.
   */
  start(inputs: InputsOf<I>, context: InferContext): S | Promise<S>;
  /**
   * One step for all active requests: as many results as there are states, in the same order; tensors without the
   * batch axis. One that throws ends all of them. A request whose client does not keep up is left out until it does.
   */
  step(
    active: readonly S[],
    instance: InstanceInfo,
  ): readonly StepResult<O>[] | Promise<readonly StepResult<O>[]>;
  /** A request is over, in whichever way: time to let go of what is kept for it. */
  end?(state: S): void;
}

/**
 * Makes a callback for continuous (iteration-level) batching: requests run together step by step, each for as many
 * steps as it needs. Between two steps new requests join and those that are done, given up or failed leave, so that a
 * short request never waits for a long one. At most `maxBatchSize` requests are active in an instance at a time;
 * others wait in the queue.
 *
 * ```
 * step      1    2    3    4    5
 * request A [a]  [a]  [a]done
 * request B      [b]  [b]  [b]done     joins before step 2
 * request C                [c]  [c]    joins when A has left, if there is room for two
 * ```
 *
 * The model is decoupled, and its requests have one row. A module for worker threads exports the callback as default
 * and is bound with `config: { stepwise: true }`.
 *
 * @example
 * ```ts
 * const inferFunc = stepwise({
 *   start: ({ prompt }) => ({ tokens: tokenize(prompt) }),
 *   step: (active) => {
 *     const next = net.nextTokens(active.map(({ tokens }) => tokens)); // one pass for all
 *     return active.map(({ tokens }, i) => {
 *       tokens.push(next[i]);
 *       const outputs = { token: [next[i]] };
 *       return next[i] === END ? done() : outputs;
 *     });
 *   },
 * });
 * ```
 */
export function stepwise<const I extends readonly TensorSpec[], const O extends readonly TensorSpec[], S>(
  model: StepwiseModel<I, O, S>,
): StyledInferFunc<I, O> {
  const callback = (): never => {
    throw new TypeError("cannot call a stepwise callback directly: pass it to bind");
  };
  Object.defineProperty(callback, callableStyle, { value: "stepwise" });
  Object.defineProperty(callback, stepwiseModel, { value: model });
  return callback as StyledInferFunc<I, O>;
}

const stepwiseModel = Symbol.for("tritonjs.stepwiseModel");

/** A stepwise model, its types forgotten. */
export type AnyStepwiseModel = StepwiseModel<[], [], unknown>;

/** What is wrong with a module whose stepwise callback runs as any other. */
export const STEPWISE_IS_TOLD = "the module's callback is made with stepwise(): set config.stepwise";

/** What is wrong with any other module that is bound as one. */
export const STEPWISE_IS_MISSING =
  "config.stepwise is set, but the module's callback is not made with stepwise()";

/** The model of a callback made with `stepwise`. */
export function stepwiseModelOf(callback: object): AnyStepwiseModel {
  return (callback as { [stepwiseModel]: AnyStepwiseModel })[stepwiseModel];
}

/**
 * Ends a request of a stepwise callback.
 *
 * @param outputs the last response, if there is one
 */
export function done<T = never>(outputs?: T): Done<T> {
  return { [doneMark]: true, outputs };
}

/** True for what `done` makes. */
export function isDone(result: unknown): result is Done<unknown> {
  return typeof result === "object" && result !== null && doneMark in result;
}
