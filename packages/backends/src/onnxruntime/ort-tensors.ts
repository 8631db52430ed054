import {
  DATA_TYPES,
  type DataType,
  type Elements,
  errorFor,
  type ModelConfig,
  type ModelInput,
  Tensor,
  type TritonError,
  toOrtType,
} from "@tritonjs/protocol";
import type { InferenceSession, Tensor as OrtTensor } from "onnxruntime-node";
import type { SessionTensor, SessionTensors } from "./describe-onnx-model.js";
import type { SessionData } from "./onnx-options.js";

type Tensors = ReadonlyMap<string, Tensor>;

const FROM_ORT = new Map(DATA_TYPES.map((datatype) => [toOrtType(datatype), datatype]));

const decoder = new TextDecoder("utf-8", { fatal: true });
const encoder = new TextEncoder();

/**
 * Converts inputs to the form that `session.run` takes. They are plain objects, because the `Tensor` constructor
 * rejects float16 on newer versions of Node.
 *
 * @param scalars names of inputs without dimensions in the model's file: a configuration has to give them one
 * @throws TritonError INVALID_ARG for text that ONNX Runtime cannot hold.
 */
export function toFeeds(inputs: Tensors, scalars: ReadonlySet<string>): Record<string, OrtTensor> {
  const feeds: Record<string, unknown> = {};
  for (const [name, tensor] of inputs) {
    feeds[name] = {
      type: toOrtType(tensor.datatype),
      dims: scalars.has(name) ? [] : tensor.shape,
      data: tensor.datatype === "BYTES" ? toStrings(name, tensor.elements as Uint8Array[]) : tensor.elements,
      location: "cpu",
    };
  }
  return feeds as Record<string, OrtTensor>;
}

function toStrings(name: string, elements: readonly Uint8Array[]): string[] {
  return elements.map((element, i) => {
    if (element.includes(0))
      throw unfit(name, i, "it contains a NUL byte, which ends a string of ONNX Runtime");
    try {
      return decoder.decode(element);
    } catch {
      throw unfit(name, i, "it is not UTF-8, which strings of ONNX Runtime must be");
    }
  });
}

function unfit(name: string, index: number, why: string): TritonError {
  const text = `cannot pass element ${index} of input '${name}' as an ONNX string: ${why}`;
  return errorFor("INVALID_INPUT", text);
}

/** Converts the session's results to tensors over the same memory. */
export function fromResults(results: Readonly<Record<string, OrtTensor>>): Map<string, Tensor> {
  return new Map(
    Object.entries(results).map(([name, { type, dims, data }]) => {
      const datatype = FROM_ORT.get(type);
      if (datatype === undefined) {
        const text = `output '${name}' has type ${type}, which the protocol cannot carry`;
        throw errorFor("MODEL_NOT_SUPPORTED", text);
      }
      return [name, Tensor.fromElements(datatype, [...dims], toElements(datatype, data))];
    }),
  );
}

function toElements(datatype: DataType, data: OrtTensor["data"]): Elements {
  if (datatype === "BYTES") return (data as string[]).map((text) => encoder.encode(text));
  // Newer versions of Node have a Float16Array. Here the elements of FP16 are their bits.
  if (datatype === "FP16" && ArrayBuffer.isView(data) && !(data instanceof Uint16Array)) {
    return new Uint16Array(data.buffer, data.byteOffset, data.byteLength / 2);
  }
  return data as Elements;
}

/** The tensors of a session; undefined with versions of onnxruntime-node that do not provide shapes. */
export function sessionTensors({
  inputMetadata,
  outputMetadata,
}: InferenceSession): SessionTensors | undefined {
  if (!Array.isArray(inputMetadata) || !Array.isArray(outputMetadata)) return undefined;
  return { inputs: inputMetadata.flatMap(toTensor), outputs: outputMetadata.flatMap(toTensor) };
}

function toTensor(value: InferenceSession.ValueMetadata): SessionTensor[] {
  if (!value.isTensor) return [];
  const shape = value.shape.map((dim) => (typeof dim === "number" ? dim : -1));
  return [{ name: value.name, dtype: FROM_ORT.get(value.type), shape }];
}

/** The shape of a tensor inside the model. */
function shapeOf({ dims, reshape }: Pick<ModelInput, "dims" | "reshape">): readonly number[] {
  return reshape?.shape ?? dims;
}

/**
 * Names of inputs that the session gets without dimensions. An input of unknown rank is a scalar if its configuration
 * has a single element, as in Triton's onnxruntime backend.
 */
export function scalarInputs(
  { scalars, ranksUnknown }: Pick<SessionData, "scalars" | "ranksUnknown">,
  { maxBatchSize, input }: Pick<ModelConfig, "maxBatchSize" | "input">,
): ReadonlySet<string> {
  const single = input.filter((one) => maxBatchSize === 0 && shapeOf(one).every((dim) => dim === 1));
  const names = single.map(({ name }) => name).filter((name) => ranksUnknown.includes(name));
  return new Set([...scalars, ...names]);
}

/**
 * Gives scalar outputs the dimensions of the configuration, `[1]`, as Triton's onnxruntime backend does. A
 * configuration cannot have a tensor without dimensions.
 */
export function scalarOutputs({
  maxBatchSize,
  output,
}: Pick<ModelConfig, "maxBatchSize" | "output">): (outputs: Map<string, Tensor>) => Map<string, Tensor> {
  if (maxBatchSize > 0) return (outputs) => outputs;
  const shapes = new Map(output.map((one) => [one.name, shapeOf(one)]));
  return (outputs) => {
    for (const [name, tensor] of outputs) {
      if (tensor.shape.length > 0) continue;
      const shape = shapes.get(name) ?? [];
      if (shape.every((dim) => dim === 1)) outputs.set(name, tensor.reshaped(shape));
    }
    return outputs;
  };
}
