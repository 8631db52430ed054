import type { InferenceResponse, ReadyModel } from "@tritonjs/core/frontend";
import { type DataType, NO_PARAMETERS, type Shape, sameShape, type Tensor } from "@tritonjs/protocol";
import type { OutputForms } from "../decode/requested-outputs.js";

/** What the JSON of an answer says of an output that follows it. */
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
export function knownJson({ config }: ReadyModel, response: InferenceResponse): Buffer | undefined {
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

/** Keeps the JSON of an answer of which {@link isRepeated} is true. */
export function keepJson({ config }: ReadyModel, response: InferenceResponse, json: Uint8Array): void {
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
export function isRepeated({ id, parameters, outputs }: InferenceResponse, forms: OutputForms): boolean {
  if (id !== "" || parameters !== NO_PARAMETERS) return false;
  for (const name of outputs.keys()) {
    const { binary, classes, range } = forms.named.get(name) ?? forms.others;
    if (!binary || classes > 0 || range !== undefined) return false;
  }
  return true;
}

/** The bytes of the outputs in their order, without empty ones. */
export function bytesOf(outputs: ReadonlyMap<string, Tensor>): Uint8Array[] {
  const bytes: Uint8Array[] = [];
  for (const tensor of outputs.values()) if (tensor.byteLength > 0) bytes.push(tensor.bytes);
  return bytes;
}
