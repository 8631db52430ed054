import { encodeMessage, inference } from "@tritonjs/grpc-messages";
import { type Shape, sameShape } from "@tritonjs/protocol";

type ResponseMessage = inference.ModelInferResponse.$Properties;
type Outputs = readonly inference.ModelInferResponse.InferOutputTensor.$Properties[];

/** Encoded fields of a response that are equal in the responses of a model with outputs of the same shapes. */
export interface ResponseHead {
  /** Name and version of the model. */
  readonly model: Uint8Array;
  /** Name, data type and shape of each output. */
  readonly outputs: Uint8Array;
}

interface KnownHead extends ResponseHead {
  readonly version: string;
  readonly described: Outputs;
}

const MAX_HEADS = 1024;

/** The last head of each model. Encoding one takes 1 µs. */
const heads = new Map<string, KnownHead>();

/** Encodes the head of a response, unless that of the model's last response is the same. */
export function responseHead({ modelName, modelVersion, outputs }: ResponseMessage): ResponseHead {
  const [name, version, described] = [modelName ?? "", modelVersion ?? "", outputs ?? []];
  const known = heads.get(name);
  if (known !== undefined && known.version === version && sameOutputs(known.described, described))
    return known;
  const head = {
    model: encodeMessage(inference.ModelInferResponse, { modelName: name, modelVersion: version }),
    outputs: encodeMessage(inference.ModelInferResponse, { outputs: described as never }),
    version,
    // The model may change its shapes later.
    described: described.map((output) => ({ ...output, shape: [...(output.shape ?? [])] })),
  };
  // A response without outputs is an error, whose version is the client's text.
  if (described.length === 0) return head;
  if (heads.size >= MAX_HEADS) heads.clear();
  heads.set(name, head);
  return head;
}

function sameOutputs(some: Outputs, others: Outputs): boolean {
  if (some.length !== others.length) return false;
  for (let i = 0; i < some.length; i++) {
    const [one, other] = [some[i]!, others[i]!];
    if (one.name !== other.name || one.datatype !== other.datatype) return false;
    if (!sameShape((one.shape ?? []) as Shape, (other.shape ?? []) as Shape)) return false;
  }
  return true;
}
