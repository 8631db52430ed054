import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import type { Isolation, ModelConfig } from "@tritonjs/protocol";
import { callableProblems } from "../callable/callable-problems.js";
import { takesMixedInputs } from "../callable/decorators.js";
import { type AnyInferFunc, isGenerator, styleOf } from "../callable/infer-func.js";

import { type ExecutorContext, isBackend } from "../instance/backend.js";

import type { Executor } from "../instance/executor.js";
import { importCallable, type ModuleOptions } from "../instance/import-callable.js";
import { InlineExecutor } from "../instance/inline-executor.js";
import { serverHost } from "../instance/module/server-host.js";
import { WorkerExecutor } from "../instance/worker/worker-executor.js";
import { runningFields } from "../observe/log/request-fields.js";
import type { AnyBindOptions } from "./bind-options.js";

/** How the instances of a model are made. */
export interface ExecutorPlan {
  /** Triton's `backend` and `platform` of the model. */
  readonly backend: string;
  readonly platform: string;
  /** Number of instances if the configuration gives none. */
  readonly defaultInstanceCount: number;
  /** Set if no other number of instances is possible. */
  readonly exactInstanceCount?: number;
  /** True if a callback is a generator function. */
  readonly generates: boolean;
  /** False for `sample` callbacks, which take one request at a time. */
  readonly batches: boolean;
  /** True for a module, which runs in a worker. */
  readonly runsModule?: boolean;
  /** Where the instances can run, the default first. Undefined for a backend that decides by itself. */
  readonly isolations?: readonly Isolation[] | undefined;
  /** True for native code, which cannot be interrupted within a thread. */
  readonly isNative: boolean;
  readonly problems: readonly string[];
  /** Whether all callbacks accept requests with different sets of optional inputs in one batch. */
  mixesInputs(config: ModelConfig): boolean;
  /** Lists problems of the callbacks for a model of this configuration. */
  problemsWith(config: ModelConfig): readonly string[];
  create(context: ExecutorContext): Executor;
}

/** Backend name of models written in JavaScript: callbacks and modules. */
const JAVASCRIPT = "javascript";

/** Reads `inferFunc` in all its forms. */
export function planExecutors({ inferFunc, strict = false, config }: AnyBindOptions): ExecutorPlan {
  if (isBackend(inferFunc)) {
    const { backendName, platform } = inferFunc;
    return {
      backend: backendName,
      platform,
      defaultInstanceCount: 1,
      generates: false,
      batches: true,
      isolations: inferFunc.isolations,
      isNative: inferFunc.endsBatches !== true,
      problems: [],
      mixesInputs: () => false,
      problemsWith: () => [],
      create: (context) => inferFunc.createExecutor(context),
    };
  }
  if (!(inferFunc instanceof URL)) return planFunctions(inferFunc);
  return planModule(inferFunc, { strict, stepwise: config?.stepwise });
}

function planModule(url: URL, options: Omit<ModuleOptions, "module">): ExecutorPlan {
  const missing = url.protocol === "file:" && !existsSync(fileURLToPath(url));
  const module: ModuleOptions = { ...options, module: url.href };
  const program = {
    entry: new URL("../instance/worker/callable-model.js", import.meta.url),
    data: module,
    interruptible: true,
    joins: true,
  };
  return {
    backend: JAVASCRIPT,
    platform: "",
    defaultInstanceCount: 1,
    generates: false,
    batches: true,
    runsModule: true,
    isolations: ["worker", "process", "inline"],
    isNative: false,
    problems: missing ? [`inferFunc: cannot find the module ${url.href}`] : [],
    mixesInputs: () => false,
    problemsWith: () => [],
    create: (context) => {
      const host = serverHost(context.info, context.log, context.metrics, context.control);
      const warn = (message: string) => process.emitWarning(message, "TritonWarning");
      return context.hosting.isolation === "inline"
        ? new InlineExecutor((running) =>
            importCallable(module, context.info, {
              ...host,
              log: (line) => host.log(line, runningFields(running)),
            }),
          )
        : new WorkerExecutor(program, { ...context, warn, host });
    },
  };
}

function planFunctions(inferFunc: AnyInferFunc | readonly AnyInferFunc[]): ExecutorPlan {
  const functions = Array.isArray(inferFunc)
    ? (inferFunc as readonly AnyInferFunc[])
    : [inferFunc as AnyInferFunc];
  const callable = functions.length > 0 && functions.every((fn) => typeof fn === "function");
  const samples = callable && functions.some((fn) => styleOf(fn) === "sample");
  return {
    backend: JAVASCRIPT,
    platform: "",
    defaultInstanceCount: functions.length,
    ...(Array.isArray(inferFunc) ? { exactInstanceCount: functions.length } : {}),
    generates: callable && functions.some(isGenerator),
    batches: !samples,
    isolations: ["inline"],
    isNative: false,
    problems: callable
      ? []
      : ["inferFunc: expected a function, a list of functions, a URL of a module, or a backend"],
    mixesInputs: (config) => functions.every((fn) => takesMixedInputs(fn, config)),
    problemsWith: (config) => [...new Set(functions.flatMap((fn) => callableProblems(fn, config)))],
    create: ({ info, checker }) =>
      new InlineExecutor({ fn: functions[info.instanceIndex % functions.length]!, info, checker }),
  };
}
