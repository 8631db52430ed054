import { callableProblems } from "../callable/callable-problems.js";
import type { InstanceInfo } from "../callable/infer-context.js";
import { type AnyInferFunc, styleOf } from "../callable/infer-func.js";
import { STEPWISE_IS_TOLD } from "../callable/stepwise.js";
import { isDecoupled } from "../config/model-config.js";
import { TritonError } from "../errors/triton-error.js";
import { OutputChecker } from "../response/check-outputs.js";
import type { Callable } from "./run-callable.js";

/**
 * Imports a user's module, whose default export is the callback.
 *
 * @throws TritonError INVALID_ARG for one that exports something else
 */
export async function importCallable(
  module: string,
  info: InstanceInfo,
  strict: boolean | undefined,
): Promise<Callable> {
  const fn: unknown = ((await import(module)) as { default?: unknown }).default;
  if (typeof fn !== "function") {
    throw new TritonError(
      "INVALID_ARG",
      `model '${info.modelName}': the module ${module} must export its callback as default, got ${typeof fn}`,
    );
  }
  const callable = { fn: fn as AnyInferFunc, info, checker: new OutputChecker(info.modelConfig, strict) };
  const problems = callableProblems(fn, info.modelConfig);
  if (problems.length > 0) {
    throw new TritonError("INVALID_ARG", `model '${info.modelName}': ${problems.join("; ")}`);
  }
  if (styleOf(callable.fn) === "stepwise" && !isDecoupled(info.modelConfig)) {
    throw new TritonError("INVALID_ARG", `model '${info.modelName}': ${STEPWISE_IS_TOLD}`);
  }
  return callable;
}
