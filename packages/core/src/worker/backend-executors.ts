import { TritonError } from "@tritonjs/protocol";
import type { Registry } from "prom-client";
import type { AnyInferFunc, InstanceInfo } from "../callback/infer-func.js";
import type {
  Execution,
  ExecutionResult,
  Executor,
  ExecutorContext,
  ModelControl,
} from "../instance/backend.js";
import type { ModuleHost } from "../instance/import-callable.js";
import { InlineExecutor } from "../instance/inline-executor.js";
import { answerControl, notServed, writeLine } from "../instance/js-model.js";
import { StepwiseExecutor } from "../instance/stepwise-executor.js";
import type { Log } from "../observe/log.js";
import { applyMetricChange, type MetricFamily } from "../observe/metric-families.js";
import type { WorkerProgram } from "./open-worker.js";
import { WorkerExecutor } from "./worker-executor.js";

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
export function callbackExecutor(fn: unknown, { info, checker, log }: ExecutorContext): Executor {
  return new InlineExecutor({ fn: fn as AnyInferFunc, info, checker }, log);
}

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
  const { info, log, metrics, control } = context;
  const host = serverHost(info, log, metrics, control);
  return new WorkerExecutor(program, { ...context, host, warn: (message) => log.warning(message) });
}

/** Options of {@link continuousWorker}. */
export interface ContinuousWorkerOptions {
  /** Module of the thread, which exports `load(data, info, host)`: a {@link WorkerEntry}. */
  readonly entry: URL;
  /** Argument of `load`; must survive structured cloning. */
  readonly data: unknown;
  /** Number of requests that the worker takes at a time. Call `onRoom` of the executor when it has grown. */
  capacity(): number;
  /** Called for each batch before it goes to the worker. */
  onExecute?(): void;
  /** Receives what the model reports with `host.report`. */
  onReport?(value: unknown): void;
  /** Called when the executor has stopped. */
  onStop?(): void;
  /** Shows a warning of the worker. */
  warn(message: string): void;
}

/** Sets gauges of a model on the metrics page. */
export type ChangeGauge = (
  family: Omit<MetricFamily, "kind">,
  labels: Readonly<Record<string, string>>,
  change: number,
) => void;

/**
 * Creates an executor that runs a decoupled model in a worker thread and lets requests join those that already run
 * there. `execute` of the model returns as soon as the model has the requests, and answers them through `stream` later.
 * Stopping waits until the requests are over, because the model may run native code.
 */
export function continuousWorker(context: ExecutorContext, options: ContinuousWorkerOptions): Executor {
  const { entry, data, onReport, warn } = options;
  const { info, log, metrics, control } = context;
  const program = { entry, data, interruptible: false };
  const host = serverHost(info, log, metrics, control);
  return new ContinuousWorker(new WorkerExecutor(program, { ...context, warn, host, onReport }), options);
}

class ContinuousWorker extends StepwiseExecutor {
  readonly #options: ContinuousWorkerOptions;

  constructor(inner: Executor, options: ContinuousWorkerOptions) {
    super(inner, () => options.capacity());
    this.#options = options;
  }

  override execute(execution: Execution): Promise<readonly ExecutionResult[] | undefined> {
    this.#options.onExecute?.();
    return super.execute(execution);
  }

  override async stop(): Promise<void> {
    await super.stop();
    this.#options.onStop?.();
  }
}

/** Returns a function that changes gauges of the server's metrics page, for executors on this thread. */
export function gaugesOf({ info, log, metrics, control }: ExecutorContext): ChangeGauge {
  const host = serverHost(info, log, metrics, control);
  return (family, labels, value) =>
    host.changeMetrics([{ family: { ...family, kind: "gauge" }, labels, action: "add", value }]);
}

export function serverHost(
  { modelName, modelVersion }: Pick<InstanceInfo, "modelName" | "modelVersion">,
  log: Log,
  metrics: () => Registry,
  control: ModelControl | undefined,
): ModuleHost {
  return {
    control: async (ask) => {
      if (control === undefined) throw notServed(modelName);
      return answerControl(control, ask);
    },
    log: (line, about) => writeLine(log, line, { model: modelName, version: modelVersion, ...about }),
    changeMetrics: (changes) => {
      for (const change of changes) {
        try {
          applyMetricChange(metrics(), change);
        } catch (error) {
          log.error(`model '${modelName}' could not change its metric: ${TritonError.from(error).message}`, {
            model: modelName,
          });
        }
      }
    },
  };
}
