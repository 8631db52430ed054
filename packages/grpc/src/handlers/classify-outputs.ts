import { classify, type ReadyModel } from "@tritonjs/core";
import type { Classifications } from "../decode/requested-outputs.js";
import type { OutputFilter } from "../encode/infer-response.js";

/** Puts classes in the place of the outputs that a request wants to have classified. */
export function classifyOutputs(model: ReadyModel, classifications: Classifications): OutputFilter {
  return (name, tensor) => {
    const count = classifications.get(name);
    if (count === undefined) return tensor;
    return classify(tensor, count, model.config.maxBatchSize > 0, model.labels.get(name));
  };
}
