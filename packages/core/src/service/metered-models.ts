import type { ModelConfig } from "@tritonjs/protocol";
import type { ModelRegistry } from "../model/registry.js";
import type { MeteredModel } from "../observe/metrics.js";

/** The models in service, as the metrics see them. */
export function meteredModels(registry: ModelRegistry): MeteredModel[] {
  return registry.ready().map(({ name, namespace, version, config, statistics }) => ({
    labels: labelsOf(name, version, config, namespace),
    cached: config.responseCache?.enable === true,
    batched: config.dynamicBatching !== undefined || config.sequenceBatching?.oldest !== undefined,
    statistics,
  }));
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
