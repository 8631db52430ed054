import type { InferenceResponse, ReadyModel } from "@tritonjs/core/frontend";
import { NO_PARAMETERS, type Shape, sameShape, type Tensor } from "@tritonjs/protocol";
import type { OutputForms } from "../decode/requested-outputs.js";

/** The JSON of an answer whose outputs all follow it, with what it says of them. */
interface KnownAnswer {
  readonly modelName: string;
  readonly modelVersion: string;
  readonly outputs: readonly { readonly name: string; readonly shape: Shape; readonly byteSize: number }[];
  readonly json: Buffer;
}

/** The last answer of each model. Writing its JSON takes as long as the rest of encoding. */
const answers = new WeakMap<ReadyModel["config"], KnownAnswer>();

/** The JSON of an answer, if the model's last answer had the same; undefined for any other. */
export function knownJson({ config }: ReadyModel, response: InferenceResponse): Buffer | undefined {
  const known = answers.get(config);
  if (known === undefined || known.outputs.length !== response.outputs.size) return undefined;
  if (known.modelVersion !== response.modelVersion || known.modelName !== response.modelName)
    return undefined;
  let i = 0;
  for (const [name, tensor] of response.outputs) {
    const output = known.outputs[i++]!;
    if (output.name !== name || output.byteSize !== tensor.byteLength) return undefined;
    if (!sameShape(output.shape, tensor.shape)) return undefined;
  }
  return known.json;
}

/** Keeps the JSON of an answer of which {@link isRepeated} is true. */
export function keepJson({ config }: ReadyModel, response: InferenceResponse, json: Uint8Array): void {
  const outputs = Array.from(response.outputs, ([name, { shape, byteLength }]) => ({
    name,
    // The model may change its shapes later.
    shape: [...shape],
    byteSize: byteLength,
  }));
  const { modelName, modelVersion } = response;
  // Memory of its own, because a slice of Node's pool keeps the pool.
  const own = Buffer.from(new Uint8Array(json).buffer);
  answers.set(config, { modelName, modelVersion, outputs, json: own });
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
