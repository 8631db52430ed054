import type { Registry } from "prom-client";
import { TritonError } from "../../errors/triton-error.js";
import type { Log } from "../../observe/log/log.js";
import { applyMetricChange } from "../../observe/metric-change.js";
import type { ModuleHost } from "../import-callable.js";
import { writeLine } from "./model-logger.js";

/** Takes what a model says for the log and the metrics of the server. */
export function serverHost(modelName: string, log: Log, metrics: Registry): ModuleHost {
  return {
    log: (line) => writeLine(log, line),
    changeMetrics: (changes) => {
      for (const change of changes) {
        try {
          applyMetricChange(metrics, change);
        } catch (error) {
          log.error(`model '${modelName}' cannot change its metric: ${TritonError.from(error).message}`);
        }
      }
    },
  };
}
