import { classify, type InferenceResponse, type ReadyModel } from "@tritonjs/core/frontend";
import type { Tensor } from "@tritonjs/protocol";
import type { OutputForm, OutputForms } from "../decode/requested-outputs.js";
import { ByteWriter } from "../json/byte-writer.js";
import { writeJson } from "../json/write-json.js";
import { bytesOf, isRepeated, keepJson, knownJson } from "./known-answers.js";
import { isLongTensor, tensorDataSteps, writeTensorData } from "./tensor-data.js";

/** Class names of an output, by index; undefined when it has none. */
export type LabelLookup = (model: ReadyModel, output: string) => readonly string[] | undefined;

/** An answer ready to be sent: the JSON, then the tensors that it announces. */
export interface EncodedResponse {
  readonly json: Buffer;
  /** Binary tensors in the order of the outputs; empty ones are left out. */
  readonly tensors: readonly Uint8Array[];
}

/**
 * Encodes an answer, with each output in its requested form. Outputs for shared memory are written there.
 *
 * @throws TritonError INVALID_ARG for an output that cannot take its form, INTERNAL for an output that is larger than
 * its range of shared memory.
 */
export function encodeInferResponse(
  model: ReadyModel,
  response: InferenceResponse,
  forms: OutputForms,
  labels: LabelLookup,
): EncodedResponse {
  const repeated = isRepeated(response, forms);
  const known = repeated ? knownJson(model, response) : undefined;
  if (known !== undefined) return { json: known, tensors: bytesOf(response.outputs) };
  const steps = encodeSteps(model, response, forms, labels);
  let step = steps.next();
  while (!step.done) step = steps.next();
  if (repeated) keepJson(model, response, step.value.json);
  return step.value;
}

/** True for an answer with a tensor that takes long to write in JSON. */
export function isLongAnswer({ outputs }: InferenceResponse, forms: OutputForms): boolean {
  for (const [name, tensor] of outputs) {
    const { binary, classes, range } = forms.named.get(name) ?? forms.others;
    if (!binary && classes === 0 && range === undefined && isLongTensor(tensor)) return true;
  }
  return false;
}

/** Encodes an answer as {@link encodeInferResponse} does, with pauses within large tensors. */
export function* encodeSteps(
  model: ReadyModel,
  response: InferenceResponse,
  forms: OutputForms,
  labels: LabelLookup,
): Generator<void, EncodedResponse> {
  const writer = new ByteWriter();
  const tensors: Uint8Array[] = [];
  writer.ascii("{");
  if (response.id !== "") writer.ascii('"id":').string(response.id).ascii(",");
  writer.ascii('"model_name":').string(response.modelName);
  writer.ascii(',"model_version":').string(response.modelVersion);
  if (Object.keys(response.parameters).length > 0) {
    writer.ascii(',"parameters":');
    writeJson(writer, response.parameters);
  }
  writer.ascii(',"outputs":[');
  let separator = "";
  for (const [name, output] of response.outputs) {
    const form = forms.named.get(name) ?? forms.others;
    const tensor =
      form.classes === 0
        ? output
        : classify(output, form.classes, model.config.maxBatchSize > 0, labels(model, name));
    writer.ascii(separator);
    form.range?.put(name, tensor.bytes);
    writeHead(writer, name, tensor, form);
    if (!form.binary && form.range === undefined) {
      writer.ascii(',"data":');
      if (isLongTensor(tensor)) yield* tensorDataSteps(writer, tensor);
      else writeTensorData(writer, tensor);
    }
    writer.ascii("}");
    if (form.binary && tensor.byteLength > 0) tensors.push(tensor.bytes);
    separator = ",";
  }
  writer.ascii("]}");
  return { json: writer.bytes(), tensors };
}

/** Writes an output up to its data. An output in shared memory has neither data nor a size in the answer. */
function writeHead(writer: ByteWriter, name: string, tensor: Tensor, { binary }: OutputForm): void {
  writer.ascii('{"name":').string(name);
  writer.ascii(`,"datatype":"${tensor.datatype}","shape":[${tensor.shape.join(",")}]`);
  if (binary) writer.ascii(`,"parameters":{"binary_data_size":${tensor.byteLength}}`);
}
