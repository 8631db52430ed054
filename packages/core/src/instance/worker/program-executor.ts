import type { ExecutorContext } from "../backend.js";
import type { Executor } from "../executor.js";
import { WorkerExecutor } from "./worker-executor.js";
import type { WorkerProgram } from "./worker-program.js";

/**
 * Creates an executor that runs a program of a backend in a worker thread, or in a child process if the instance group
 * asks for that. The program's module exports `load(data)`, which returns a {@link WorkerModel}.
 *
 * @example
 * ```ts
 * const entry = new URL("./doubling-model.js", import.meta.url);
 * const doubling: BackendFactory = () => ({
 *   backendName: "doubling",
 *   platform: "",
 *   isolations: ["worker", "process"],
 *   describe: () => undefined,
 *   createExecutor: (context) => workerExecutor({ entry, data: { factor: 2 }, interruptible: true }, context),
 * });
 * ```
 */
export function workerExecutor(program: WorkerProgram, context: ExecutorContext): Executor {
  return new WorkerExecutor(program, { ...context, warn: (message) => context.log.warning(message) });
}
