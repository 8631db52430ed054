import type { InputsOf, OutputsOf, TensorSpec } from "@tritonjs/protocol";
import type { InferContext, InstanceInfo } from "./infer-context.js";
import { callableStyle, type StyledInferFunc } from "./infer-func.js";

const doneMark = Symbol.for("tritonjs.done");

/** Marks the end of a request of a stepwise callback. Made by {@link done}. */
export interface Done<T> {
  readonly [doneMark]: true;
  /** The last response. Undefined for an end without one. */
  readonly outputs: T | undefined;
}

/**
 * Result of one step for one request: a response, after which the request continues; `undefined` for no response yet;
 * its end, made with `done`; or an error, which ends it too.
 */
export type StepResult<O extends readonly TensorSpec[]> =
  | OutputsOf<O>
  | Done<OutputsOf<O>>
  | Error
  | undefined;

/** Functions of a stepwise callback: the argument of {@link stepwise}. */
export interface StepwiseModel<I extends readonly TensorSpec[], O extends readonly TensorSpec[], S> {
  /**
   * Starts a request: makes the state that is kept for it from step to step. The tensors are those of one request,
   * without the batch axis. A slow `start` does not delay other requests. An error ends this request alone.
   *
   * `context` belongs to the request and stays valid: keep it to look at its `signal` or to call other models. On the
   * main thread `start` runs in the asynchronous context of the code that sent the request.
   */
  start(inputs: InputsOf<I>, context: InferContext): S | Promise<S>;
  /**
   * Runs one step for all active requests. It returns one result for each state, in the same order, with tensors
   * without the batch axis. An error ends all active requests. A request whose client reads too slowly is left out
   * until the client has caught up.
   */
  step(
    active: readonly S[],
    instance: InstanceInfo,
  ): readonly StepResult<O>[] | Promise<readonly StepResult<O>[]>;
  /** Called when a request is over, for whatever reason. Release the state that is kept for it here. */
  end?(state: S): void;
}

/**
 * Makes a callback for continuous (iteration-level) batching. Requests run together step by step, each for as many
 * steps as it needs. Between two steps new requests join, and requests that are done, cancelled or failed leave. A
 * short request therefore never waits for a long one. At most `maxBatchSize` requests are active in an instance at a
 * time. Others wait in the queue.
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

/** A stepwise model, without the types of its tensors. */
export type AnyStepwiseModel = StepwiseModel<[], [], unknown>;

/** Problem of a module whose stepwise callback is bound without `config.stepwise`. */
export const STEPWISE_IS_TOLD = "the module's callback is made with stepwise(): set config.stepwise";

/** Problem of a module that is bound with `config.stepwise` but has another kind of callback. */
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

/** True for a result of `done`. */
export function isDone(result: unknown): result is Done<unknown> {
  return typeof result === "object" && result !== null && doneMark in result;
}
