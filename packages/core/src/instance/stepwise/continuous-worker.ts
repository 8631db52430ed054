import type { MetricFamily } from "../../observe/metric-change.js";
import type { ExecutorContext } from "../backend.js";
import type { Executor } from "../executor.js";
import { serverHost } from "../module/server-host.js";
import { WorkerExecutor } from "../worker/worker-executor.js";
import { StepwiseExecutor } from "./stepwise-executor.js";

/** What {@link continuousWorker} runs. */
export interface ContinuousWorkerOptions {
  /** Module of the thread, which exports `load(data, info, host)`: a {@link WorkerEntry}. */
  readonly entry: URL;
  /** Argument of `load`; must survive structured cloning. */
  readonly data: unknown;
  /** Number of requests that the worker takes at a time. Call `onRoom` of the executor when it has grown. */
  capacity(): number;
  /** Receives what the model reports with `host.report`. */
  onReport?(value: unknown): void;
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
  const { entry, data, capacity, onReport, warn } = options;
  const { info, log, metrics, control } = context;
  const program = { entry, data, interruptible: false };
  const host = serverHost(info.modelName, log, metrics, control);
  return new StepwiseExecutor(new WorkerExecutor(program, { ...context, warn, host, onReport }), capacity);
}

/** Returns a function that changes gauges of the server's metrics page, for executors on this thread. */
export function gaugesOf({ info, log, metrics, control }: ExecutorContext): ChangeGauge {
  const host = serverHost(info.modelName, log, metrics, control);
  return (family, labels, value) =>
    host.changeMetrics([{ family: { ...family, kind: "gauge" }, labels, action: "add", value }]);
}
