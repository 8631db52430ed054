import { classify, type ReadyModel } from "@tritonjs/core";
import type { OutputForms } from "../decode/requested-outputs.js";
import type { OutputFilter } from "../encode/infer-response.js";

const NO_BYTES = new Uint8Array(0);

/**
 * Gives outputs the form that a request asks for: classes in the place of a tensor, and no contents when they have
 * been put into shared memory.
 */
export function outputFilter(model: ReadyModel, forms: OutputForms): OutputFilter {
  return (name, tensor) => {
    const { classes, range } = forms.get(name) ?? {};
    if (range !== undefined) {
      range.put(name, tensor.bytes);
      return { datatype: tensor.datatype, shape: tensor.shape, bytes: NO_BYTES };
    }
    if (classes === undefined) return tensor;
    return classify(tensor, classes, model.config.maxBatchSize > 0, model.labels.get(name));
  };
}
