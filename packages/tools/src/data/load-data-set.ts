import { DATA_DEFAULTS, type DataOptions } from "./data-options.js";
import type { TensorDataSet, TensorPayload } from "./data-set.js";
import { generatedSteps } from "./generated-steps.js";
import { givenSteps } from "./given-steps.js";
import { checkShapes } from "./input-shapes.js";
import { payloadsOf } from "./payloads.js";
import type { TestedModel } from "./tested-model.js";

/**
 * Makes the payloads of requests to a model.
 *
 * @throws TritonError INVALID_ARG that names the file, the entry and the input, with what was expected and what was
 * found.
 */
export async function loadDataSet(model: TestedModel, options: DataOptions = {}): Promise<TensorDataSet> {
  const { inputData = "random", shapes = {}, batchSize = DATA_DEFAULTS.batchSize } = options;
  checkShapes(model, shapes);
  const steps =
    inputData === "random" || inputData === "zero"
      ? generatedSteps(model, options, inputData)
      : await givenSteps(model, inputData, options);
  const set = payloadsOf(model, steps, batchSize);
  const freshData = options.freshData ?? DATA_DEFAULTS.freshData;
  return freshData ? set : { ...set, payloads: set.payloads.map(withoutFresh) };
}

function withoutFresh({ inputs, expected }: TensorPayload): TensorPayload {
  return { inputs: inputs.map(({ fresh: _, ...input }) => input), expected };
}
