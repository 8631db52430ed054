import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { NO_GPUS } from "../config/gpus.js";
import type { Backend } from "../instance/backend.js";
import { importCallable, type ModuleOptions } from "../instance/import-callable.js";
import { InlineExecutor } from "../instance/inline-executor.js";
import type { ModelPlan } from "../model/model-server.js";
import { runningFields } from "../observe/log.js";
import { serverHost } from "../worker/backend-executors.js";
import type { WorkerProgram } from "../worker/open-worker.js";
import { WorkerExecutor } from "../worker/worker-executor.js";
import { planBinding } from "./plan-binding.js";
import { JAVASCRIPT, type PlanModule } from "./plan-executors.js";

/** Program of workers that run a module. */
export function moduleProgram(data: ModuleOptions): WorkerProgram {
  const entry = new URL("../worker/callable-model.js", import.meta.url);
  return { entry, data, interruptible: true, joins: true };
}

/** The configuration and the class names that `bind` makes for a backend alone. Nothing runs. */
export function bindingOf(modelName: string, inferFunc: Backend): Pick<ModelPlan, "config" | "labels"> {
  return planBinding({ modelName, inferFunc }, () => false, NO_GPUS, planModule);
}

/** Plans how Node runs a module: in a worker thread, a child process, or this thread. */
export const planModule: PlanModule = (url, options) => {
  const missing = url.protocol === "file:" && !existsSync(fileURLToPath(url));
  const { strict, stepwise } = options;
  const module: ModuleOptions = { strict, stepwise, module: url.href };
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
        ? new InlineExecutor(
            (running) =>
              importCallable(module, context.info, {
                ...host,
                log: (line) => host.log(line, runningFields(running)),
              }),
            context.log,
            options.releasesInputs,
          )
        : new WorkerExecutor(moduleProgram(module), { ...context, warn, host });
    },
  };
};
