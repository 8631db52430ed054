import { dirname } from "node:path";
import { fileURLToPath } from "node:url";
import { TritonError } from "@tritonjs/protocol";
import { callableProblems } from "../callable/callable-problems.js";
import type { InstanceInfo } from "../callable/infer-context.js";
import { type AnyInferFunc, styleOf } from "../callable/infer-func.js";
import { rememberOriginal } from "../callable/missing-wrapper.js";
import { STEPWISE_IS_MISSING, STEPWISE_IS_TOLD } from "../callable/stepwise.js";
import type { LogSubject } from "../observe/log/logger.js";
import type { MetricChange } from "../observe/metric-change.js";
import { OutputChecker } from "../response/check-outputs.js";
import type { JsModel } from "./module/js-model.js";
import { type ControlAsk, modelControl } from "./module/model-control.js";
import { type LogLine, modelLogger } from "./module/model-logger.js";
import { modelMetrics } from "./module/model-metrics.js";
import { readModule } from "./module/read-module.js";
import type { Callable } from "./run-callable.js";

/** A user's module and its settings. */
export interface ModuleOptions {
  /** URL of the module. */
  readonly module: string;
  /** True if its callback has to return ndarrays. */
  readonly strict?: boolean | undefined;
  /** True if its requests run step by step, as a callback made with `stepwise` requires, and no other accepts. */
  readonly stepwise?: boolean | undefined;
  /** Directory of the model. @default the directory of the module */
  readonly directory?: string | undefined;
}

/** Receives the output of a model besides its answers. */
export interface ModuleHost {
  /** @param about further fields of the line: the requests that the model works on */
  log(line: LogLine, about?: LogSubject): void;
  changeMetrics(changes: readonly MetricChange[]): void;
  /** Handles a model's request to the server's repository. */
  control(ask: ControlAsk): Promise<unknown>;
}

/** A model of a module, ready to run. */
export interface ImportedModel {
  readonly callable: Callable;
  /** Releases the model's resources, and logs failures; absent if the model defines no `finalize`. */
  readonly finalize: (() => Promise<void>) | undefined;
}

/**
 * Imports a user's module, creates an instance of its model and initializes it.
 *
 * @throws TritonError INVALID_ARG if the module exports no model; INTERNAL for errors of its constructor and
 * `initialize`, unless they are TritonErrors
 */
export async function importCallable(
  { module, strict, stepwise = false, directory }: ModuleOptions,
  info: InstanceInfo,
  host: ModuleHost,
): Promise<ImportedModel> {
  const { modelName, modelConfig } = info;
  const read = await readModule(module, modelName);
  const model = await stage(modelName, "constructor", () => read.create());
  const fn = callbackOf(model, modelName);
  if ((styleOf(fn) === "stepwise") !== stepwise) {
    const problem = stepwise ? STEPWISE_IS_MISSING : STEPWISE_IS_TOLD;
    throw new TritonError("INVALID_ARG", `model '${modelName}': ${problem}`, { reason: "INVALID_MODEL" });
  }
  const problems = callableProblems(fn, modelConfig);
  if (problems.length > 0) {
    throw new TritonError("INVALID_ARG", `model '${modelName}': ${problems.join("; ")}`, {
      reason: "INVALID_MODEL",
    });
  }
  await stage(modelName, "initialize", () =>
    model.initialize?.({
      modelName,
      modelVersion: info.modelVersion,
      modelConfig,
      instanceName: info.instanceName,
      instanceIndex: info.instanceIndex,
      device: info.device,
      modelDirectory: directory ?? dirname(fileURLToPath(module)),
      logger: modelLogger((line) => host.log(line)),
      metrics: modelMetrics((changes) => host.changeMetrics(changes)),
      models: modelControl((ask) => host.control(ask)),
    }),
  );
  return {
    callable: { fn, info, checker: new OutputChecker(modelConfig, strict) },
    finalize:
      model.finalize &&
      (async () => {
        try {
          await stage(modelName, "finalize", () => model.finalize?.());
        } catch (error) {
          host.log({ level: "error", message: TritonError.from(error).message });
        }
      }),
  };
}

/** `execute` of a model, with the marks that `batch`, `sample`, `stepwise` and decorators have set on it. */
function callbackOf(model: JsModel, modelName: string): AnyInferFunc {
  const { execute } = model;
  if (typeof execute !== "function") {
    throw new TritonError(
      "INVALID_ARG",
      `model '${modelName}': expected its class to have a method execute(requests, context), got ${typeof execute}`,
      { reason: "INVALID_MODEL" },
    );
  }
  const bound = execute.bind(model as never);
  rememberOriginal(bound, execute);
  for (const mark of Object.getOwnPropertySymbols(execute)) {
    Object.defineProperty(bound, mark, Object.getOwnPropertyDescriptor(execute, mark)!);
  }
  return bound as AnyInferFunc;
}

/** Runs one stage of starting or ending a model, and names the stage in its error. */
async function stage<T>(modelName: string, what: string, run: () => T | Promise<T>): Promise<T> {
  try {
    return await run();
  } catch (error) {
    const { code, message, reason } = TritonError.from(error);
    throw new TritonError(code, `model '${modelName}': ${what} failed: ${message}`, { reason, cause: error });
  }
}
