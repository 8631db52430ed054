import type { MetricFamily } from "../../observe/metric-change.js";
import type { ExecutorContext } from "../backend.js";
import type { Execution, ExecutionResult, Executor } from "../executor.js";
import { serverHost } from "../module/server-host.js";
import { WorkerExecutor } from "../worker/worker-executor.js";
import { StepwiseExecutor } from "./stepwise-executor.js";

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
