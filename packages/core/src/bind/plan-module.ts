import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { moduleProgram } from "../backends/javascript-backend.js";
import { importCallable, type ModuleOptions } from "../instance/import-callable.js";
import { InlineExecutor } from "../instance/inline-executor.js";
import { runningFields } from "../observe/log.js";
import { serverHost } from "../worker/backend-executors.js";
import { WorkerExecutor } from "../worker/worker-executor.js";
import { JAVASCRIPT, type PlanModule } from "./plan-executors.js";

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
