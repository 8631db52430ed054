import type { ModelConfig } from "@tritonjs/protocol";
import type { MeteredModel } from "../observe/model-families.js";
import type { ModelRegistry } from "./registry.js";

/** The models in service, as the metrics see them. */
export function meteredModels(registry: ModelRegistry): MeteredModel[] {
  return registry.ready().map((model) => {
    const { name, namespace, version, config, statistics, requests, isEnsemble, instances } = model;
    return {
      labels: labelsOf(name, version, config, namespace),
      cached: config.responseCache?.enable === true,
      batched: config.dynamicBatching !== undefined || config.sequenceBatching?.oldest !== undefined,
      // Read together with the statistics: a request that is answered meanwhile would be counted twice.
      get inflightCount() {
        return requests.count;
      },
      get instanceCount() {
        return isEnsemble ? undefined : instances.serving.length;
      },
      statistics,
    };
  });
}

/** Labels of a model's metrics. The names of its metric tags get a leading underscore. */
function labelsOf(
  name: string,
  version: number,
  config: ModelConfig,
  namespace: string,
): Record<string, string> {
  const tags = Object.entries(config.metricTags).map(([key, value]) => [`_${key}`, value]);
  const space = namespace === "" ? {} : { namespace };
  return { ...Object.fromEntries(tags), ...space, model: name, version: String(version) };
}
