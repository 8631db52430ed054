import { TritonError } from "@tritonjs/protocol";
import type { Registry } from "prom-client";
import type { InstanceInfo } from "../../callable/infer-context.js";
import type { Log } from "../../observe/log/log.js";
import { applyMetricChange } from "../../observe/metric-change.js";
import type { ModelControl } from "../backend.js";
import type { ModuleHost } from "../import-callable.js";
import { answerControl } from "./model-control.js";
import { writeLine } from "./model-logger.js";

/** Connects a model to the server's log, metrics and repository. */
export function serverHost(
  { modelName, modelVersion }: Pick<InstanceInfo, "modelName" | "modelVersion">,
  log: Log,
  metrics: () => Registry,
  control: ModelControl | undefined,
): ModuleHost {
  return {
    control: async (ask) => {
      if (control !== undefined) return answerControl(control, ask);
      throw new TritonError(
        "UNAVAILABLE",
        `model '${modelName}' runs without a server, so it cannot ask one`,
        {
          reason: "NO_SERVER",
        },
      );
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
