import {
  type DataType,
  errorFor,
  isOnlyBinary,
  NO_PARAMETERS,
  type Shape,
  sameShape,
  type Tensor,
} from "@tritonjs/protocol";
import { classify, type InferenceResponse, type ReadyModel } from "@tritonjs/server";
import { finish } from "../exchange/loop-turns.js";
import { ByteWriter, writeJson } from "../json/write-json.js";
import type { OutputForm, OutputForms } from "./infer-request.js";

/** Class names of an output, by index; undefined when it has none. */
export type LabelLookup = (model: ReadyModel, output: string) => readonly string[] | undefined;

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
  const encoded = finish(encodeSteps(model, response, forms, labels));
  if (repeated) keepJson(model, response, encoded.json);
  return encoded;
}

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

/** The description, in the JSON of an answer, of an output whose bytes follow. */
interface KnownOutput {
  readonly name: string;
  readonly datatype: DataType;
  readonly shape: Shape;
  readonly byteSize: number;
}

/** The JSON of an answer whose outputs all follow it, with what it says of them. */
interface KnownAnswer {
  readonly modelName: string;
  readonly modelVersion: string;
  readonly outputs: readonly KnownOutput[];
  readonly json: Uint8Array;
}

/** The last answer of each model. Writing its JSON takes as long as the rest of encoding. */
const answers = new WeakMap<ReadyModel["config"], KnownAnswer>();

/** A copy of the JSON of an answer, if the model's last answer had the same; undefined for any other. */
function knownJson({ config }: ReadyModel, response: InferenceResponse): Buffer | undefined {
  const known = answers.get(config);
  if (known === undefined || known.outputs.length !== response.outputs.size) return undefined;
  if (known.modelVersion !== response.modelVersion || known.modelName !== response.modelName)
    return undefined;
  let i = 0;
  for (const [name, tensor] of response.outputs) {
    const output = known.outputs[i++]!;
    if (output.name !== name || output.datatype !== tensor.datatype) return undefined;
    if (output.byteSize !== tensor.byteLength || !sameShape(output.shape, tensor.shape)) return undefined;
  }
  return Buffer.from(known.json);
}

function keepJson({ config }: ReadyModel, response: InferenceResponse, json: Uint8Array): void {
  const outputs = Array.from(response.outputs, ([name, { datatype, shape, byteLength }]) => ({
    name,
    datatype,
    // The model may change its shapes later.
    shape: [...shape],
    byteSize: byteLength,
  }));
  const { modelName, modelVersion } = response;
  // Memory of its own, because a slice of Node's pool keeps the pool.
  answers.set(config, { modelName, modelVersion, outputs, json: new Uint8Array(json) });
}

/** True for an answer whose JSON says nothing that holds for one request alone. */
function isRepeated({ id, parameters, outputs }: InferenceResponse, forms: OutputForms): boolean {
  if (id !== "" || parameters !== NO_PARAMETERS) return false;
  for (const name of outputs.keys()) {
    const { binary, classes, range } = forms.named.get(name) ?? forms.others;
    if (!binary || classes > 0 || range !== undefined) return false;
  }
  return true;
}

function bytesOf(outputs: ReadonlyMap<string, Tensor>): Uint8Array[] {
  const bytes: Uint8Array[] = [];
  for (const tensor of outputs.values()) if (tensor.byteLength > 0) bytes.push(tensor.bytes);
  return bytes;
}

type Elements = Tensor["elements"];

/** Numbers in one joined string: strings that grow with the tensor are slow to flatten. */
const SLICE = 4096;

/** Bytes of the length in front of a string in the wire form. */
const LENGTH_BYTES = 4;

/**
 * Writes the elements of a tensor as a flat JSON array. FP32 elements are printed as doubles.
 *
 * @param bare leaves the brackets out, for a single element
 * @throws TritonError INVALID_ARG for 16-bit floats, which have no JSON form.
 */
export function writeTensorData(writer: ByteWriter, tensor: Tensor, bare = false): void {
  checkJsonForm(tensor);
  if (!bare) writer.ascii("[");
  writeElements(writer, tensor, tensor.elements);
  if (!bare) writer.ascii("]");
}

/** Elements from which a tensor takes a millisecond or more to write, and is written in turns of the event loop. */
const LONG_TENSOR_ELEMENTS = 16 * 1024;

/** True for a tensor that should be written with {@link tensorDataSteps}. */
export function isLongTensor(tensor: Tensor): boolean {
  return tensor.shape.reduce((count, dim) => count * dim, 1) >= LONG_TENSOR_ELEMENTS;
}

/** Writes a large tensor as {@link writeTensorData} does, with a pause after every few thousand elements. */
export function* tensorDataSteps(writer: ByteWriter, tensor: Tensor): Generator<void> {
  checkJsonForm(tensor);
  writer.ascii("[");
  if (tensor.datatype === "BYTES" && !tensor.hasElements) yield* wireStringSteps(writer, tensor);
  else {
    const { elements } = tensor;
    if (elements instanceof Float32Array || elements instanceof Float64Array)
      writer.reserveDoubles(elements.length);
    for (let from = 0; from < elements.length; from += SLICE) {
      if (from > 0) writer.ascii(",");
      const to = from + SLICE;
      writeElements(
        writer,
        tensor,
        Array.isArray(elements) ? elements.slice(from, to) : elements.subarray(from, to),
      );
      yield;
    }
  }
  writer.ascii("]");
}

/** Writes strings from their wire form: an object for each would take more time and memory than the rest. */
function* wireStringSteps(writer: ByteWriter, tensor: Tensor): Generator<void> {
  const { bytes } = tensor;
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  let at = 0;
  for (let count = 0; at < bytes.length; count++) {
    const from = at + LENGTH_BYTES;
    const end = from <= bytes.length ? from + view.getUint32(at, true) : Number.POSITIVE_INFINITY;
    // Reports the fault.
    if (end > bytes.length) void tensor.elements;
    if (count > 0) writer.ascii(",");
    writer.stringBytes(bytes, from, end);
    at = end;
    if (count % SLICE === SLICE - 1) yield;
  }
}

function checkJsonForm({ datatype }: Tensor): void {
  if (!isOnlyBinary(datatype)) return;
  throw errorFor(
    "INVALID_REQUESTED_OUTPUT",
    `sending ${datatype} data via JSON is not supported. Please use the binary data format for output`,
  );
}

function writeElements(writer: ByteWriter, { datatype }: Tensor, elements: Elements): void {
  if (Array.isArray(elements)) writeStrings(writer, elements);
  else if (elements instanceof Float32Array || elements instanceof Float64Array) writer.doubles(elements);
  else if (datatype === "BOOL") writeMapped(writer, elements, (value) => (value ? "true" : "false"));
  else writeMapped(writer, elements, String);
}

function writeStrings(writer: ByteWriter, elements: readonly Uint8Array[]): void {
  elements.forEach((element, index) => {
    if (index > 0) writer.ascii(",");
    writer.stringBytes(element);
  });
}

function writeMapped(
  writer: ByteWriter,
  elements: Exclude<Elements, Uint8Array[]>,
  toText: (value: never) => string,
): void {
  const text = toText as (value: number | bigint) => string;
  for (let from = 0; from < elements.length; from += SLICE) {
    const to = Math.min(from + SLICE, elements.length);
    let joined = "";
    for (let i = from; i < to; i++) joined += i === 0 ? text(elements[i]!) : `,${text(elements[i]!)}`;
    writer.ascii(joined);
  }
}
