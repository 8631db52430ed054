import { errorFor } from "@tritonjs/protocol";

/** @throws TritonError INVALID_ARG, because browsers have no files */
export function readModelFile(model: string | URL): Uint8Array {
  throw errorFor(
    "INVALID_OPTION",
    `model: expected the bytes of a model, got the path '${model}' in a browser`,
  );
}
