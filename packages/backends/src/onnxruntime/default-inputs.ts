import { readFile } from "node:fs/promises";
import { dirname } from "node:path";
import type { Tensors } from "@tritonjs/core/internal";
import { errorFor, fromOnnxType, type ModelConfig, Tensor } from "@tritonjs/protocol";
import { modelLabel, type OnnxDescription } from "./onnx-file.js";
import type { SessionData } from "./onnx-options.js";

/*
 * Inputs with a default: an initializer of the file is also an input. A configuration makes it an optional input. Only
 * ONNX Runtime's C interface takes another value for it: `onnxruntime-node` drops the value without a word. So the
 * initializer leaves the graph before a session opens. The session then requires the input, and gets the default in
 * each run whose request has none.
 */

/** Names of the inputs with a default that a configuration makes optional. */
export function defaultInputsOf(
  { optionalInputs }: OnnxDescription,
  { input }: Pick<ModelConfig, "input">,
): readonly string[] {
  return input
    .filter(({ name, optional }) => optional && optionalInputs.some((value) => value.name === name))
    .map(({ name }) => name);
}

/** @throws TritonError INVALID_ARG for an input that no session has: `onnxruntime-node` would drop its value */
export function refuseUnknownInputs(
  { inputs }: OnnxDescription,
  defaultInputs: readonly string[],
  { name: model, input }: Pick<ModelConfig, "name" | "input">,
): void {
  const known = [...inputs.map(({ name }) => name), ...defaultInputs];
  const unknown = input.find(({ name }) => !known.includes(name));
  if (unknown === undefined) return;
  const text = `model '${model}': input '${unknown.name}' is not in the model file: expected one of ${known.join(", ")}`;
  throw errorFor("INVALID_CONFIG", text);
}

/** A model whose inputs with a default are required. */
interface WithoutDefaults {
  /** The bytes of the model; undefined if it stays as it is. */
  readonly content?: Uint8Array;
  readonly defaults: Tensors;
}

/**
 * Takes the initializers of optional inputs out of a model.
 *
 * @throws TritonError INVALID_ARG for a file that cannot be read, or is too large for one message
 */
export async function takeDefaults({ model, defaultInputs = [] }: SessionData): Promise<WithoutDefaults> {
  if (defaultInputs.length === 0) return { defaults: new Map() };
  // Few models need it, and it loads the library for messages.
  const { OnnxModel } = await import("../onnx-graph/onnx-model.js");
  const { encodeModel } = await import("../onnx-graph/onnx-messages.js");
  const isPath = typeof model === "string";
  const bytes = isPath ? await readFile(model) : model;
  const onnx = OnnxModel.decode(bytes, modelLabel(model), isPath ? dirname(model) : undefined);
  const { graph } = onnx.message;
  const taken = graph.initializer.filter(({ name }) => defaultInputs.includes(name));
  const defaults = taken.map((tensor): [string, Tensor] => {
    const datatype = fromOnnxType(tensor.dataType)!;
    const shape = tensor.dims.map(Number);
    return datatype === "BYTES"
      ? [tensor.name, Tensor.fromElements(datatype, shape, tensor.stringData)]
      : [tensor.name, Tensor.fromBytes(datatype, shape, new Uint8Array(onnx.bytesOf(tensor)))];
  });
  graph.initializer = graph.initializer.filter((tensor) => !taken.includes(tensor));
  return { content: encodeModel(onnx.message), defaults: new Map(defaults) };
}

/** The inputs of a run, with the defaults of those that its requests do not have. */
export function withDefaults(inputs: Tensors, defaults: Tensors): Tensors {
  if (defaults.size === 0) return inputs;
  return new Map([...defaults, ...inputs]);
}

/** Entry of a session's configuration by which a model of bytes finds its files of external data. */
export function externalDataEntry(
  model: string | Uint8Array,
  content: Uint8Array | undefined,
): Readonly<Record<string, string>> {
  if (content === undefined || typeof model !== "string") return {};
  return { "session.model_external_initializers_file_folder_path": dirname(model) };
}
