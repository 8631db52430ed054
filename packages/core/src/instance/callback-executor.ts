import type { AnyInferFunc } from "../callable/infer-func.js";
import type { ExecutorContext } from "./backend.js";
import type { Executor } from "./executor.js";
import { InlineExecutor } from "./inline-executor.js";

/**
 * Creates an executor that runs a callback on this thread, for backends that are written as a callback.
 *
 * @param fn a callback as `bind` takes it: plain, or wrapped in `batch` or `sample`
 * @example
 * ```ts
 * const doubling: BackendFactory = () => ({
 *   backendName: "doubling",
 *   platform: "",
 *   describe: () => undefined,
 *   createExecutor: (context) =>
 *     callbackExecutor(batch(({ x }) => ({ y: x.data.map((value) => 2 * value) })), context),
 * });
 * ```
 */
export function callbackExecutor(fn: unknown, { info, checker }: ExecutorContext): Executor {
  return new InlineExecutor({ fn: fn as AnyInferFunc, info, checker });
}
