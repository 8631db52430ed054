import { classify, type InferenceResponse, type ReadyModel } from "@tritonjs/core/frontend";
import { encodeParameter, type inference } from "@tritonjs/grpc-messages";
import type { Parameters } from "@tritonjs/protocol";
import type { OutputForms } from "../decode/requested-outputs.js";

const NO_BYTES = new Uint8Array(0);

/**
 * Encodes a response, with each output in its requested form: classes instead of a tensor, or no contents for an output
 * in shared memory. Other contents are views of the tensors.
 *
 * @throws TritonError INVALID_ARG for an output that cannot be classified, INTERNAL for an output that is larger than
 * its range of shared memory.
 */
export function encodeInferResponse(
  model: ReadyModel,
  response: InferenceResponse,
  forms: OutputForms,
): inference.ModelInferResponse.$Properties {
  const outputs: inference.ModelInferResponse.InferOutputTensor.$Properties[] = [];
  const rawOutputContents: Uint8Array[] = [];
  for (const [name, output] of response.outputs) {
    const form = forms.get(name);
    const tensor =
      form?.classes === undefined
        ? output
        : classify(output, form.classes, model.config.maxBatchSize > 0, model.labels.get(name));
    form?.range?.put(name, tensor.bytes);
    outputs.push({ name, datatype: tensor.datatype, shape: tensor.shape as number[] });
    rawOutputContents.push(form?.range === undefined ? tensor.bytes : NO_BYTES);
  }
  return {
    modelName: response.modelName,
    modelVersion: response.modelVersion,
    id: response.id,
    parameters: encodeParameters(response.parameters),
    outputs,
    rawOutputContents,
  };
}

/** Encodes response parameters: whole numbers as int64, others as double. */
function encodeParameters(parameters: Parameters): Record<string, inference.InferParameter.$Properties> {
  const entries = Object.entries(parameters);
  if (entries.length === 0) return {};
  return Object.fromEntries(entries.map(([key, value]) => [key, encodeParameter(value)]));
}
