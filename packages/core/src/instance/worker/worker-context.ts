import type { InstanceInfo } from "../../callable/infer-context.js";
import type { Clock } from "../../clock/clock.js";
import type { OutputChecker } from "../../response/check-outputs.js";
import type { ModuleHost } from "../import-callable.js";
import type { OpenedWorker } from "./opened-worker.js";
import type { WorkerPlace } from "./worker-program.js";

/** What a worker executor needs from outside. */
export interface WorkerContext extends WorkerPlace {
  readonly info: InstanceInfo;
  readonly checker: OutputChecker;
  readonly clock: Clock;
  /** Shows a warning that comes from the worker. */
  readonly warn: (message: string) => void;
  /** Takes what a module writes to the log, and changes of its metrics. */
  readonly host?: ModuleHost;
  /** A worker that has the model open already, for the first start. */
  readonly opened?: OpenedWorker | undefined;
}
