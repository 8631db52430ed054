import { toConfigJson } from "../../config/config-json.js";
import { isDecoupled } from "../../config/model-config.js";
import type { ExecutorContext } from "../../instance/backend.js";

/** What a process is told of the model that it is to load, and of its instance. */
export function loadMessage(path: string, directory: string, context: ExecutorContext) {
  const { info, placement, hosting } = context;
  const { modelName, modelVersion, modelConfig } = info;
  return {
    type: "load",
    path,
    model: modelName,
    instance: placement.name,
    decoupled: isDecoupled(modelConfig),
    outputs: modelConfig.output.map(({ name }) => name),
    states: (modelConfig.sequenceBatching?.state ?? []).map(({ outputName }) => outputName),
    reportMemory: hosting.recycle?.aboveMemoryMb !== undefined,
    /** Of `initialize`. */
    arguments: {
      model_config: JSON.stringify(toConfigJson(modelConfig)),
      model_instance_kind: placement.kind.replace("KIND_", ""),
      model_instance_name: placement.name,
      model_instance_device_id: String(placement.deviceId),
      model_repository: directory,
      model_version: String(modelVersion),
      model_name: modelName,
    },
  } as const;
}
