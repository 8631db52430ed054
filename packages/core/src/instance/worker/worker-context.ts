import type { InstanceInfo } from "../../callable/infer-context.js";
import type { Clock } from "../../clock/clock.js";
import type { Log } from "../../observe/log/log.js";
import type { OutputChecker } from "../../response/check-outputs.js";
import type { ModuleHost } from "../import-callable.js";
import type { OpenedWorker } from "./opened-worker.js";
import type { WorkerPlace } from "./worker-program.js";

/** External dependencies of a worker executor. */
export interface WorkerContext extends WorkerPlace {
  readonly info: InstanceInfo;
  readonly checker: OutputChecker;
  readonly clock: Clock;
  /** Shows a warning of the worker. */
  readonly warn: (message: string) => void;
  /** The server's log; undefined for a worker without a server. */
  readonly log?: Log;
  /** Receives a module's lines for the log, and changes of its metrics. */
  readonly host?: ModuleHost;
  /** Receives what the model tells its backend. */
  readonly onReport?: ((value: unknown) => void) | undefined;
  /** A worker that already has the model open, for the first start. */
  readonly opened?: OpenedWorker | undefined;
}
