import { TritonError } from "@tritonjs/protocol";
import type { SamplingParameters } from "../sampling/sampling-parameters.js";
import type { TokenConstraint } from "../structured/token-constraint.js";
import type { OpenDecoder } from "./open-decoder.js";

/**
 * Makes the constraint of a request for structured output; undefined if it asks for none.
 *
 * @throws TritonError UNSUPPORTED, because there is no grammar
 */
export async function openConstraint(
  { responseFormat }: SamplingParameters,
  _decoder: OpenDecoder,
): Promise<TokenConstraint | undefined> {
  if (responseFormat === undefined || responseFormat.type === "text") return undefined;
  throw new TritonError(
    "UNSUPPORTED",
    `structured output: expected 'response_format' of type 'text', got '${responseFormat.type}', which this model ` +
      "cannot write",
    { reason: "MODEL_NOT_SUPPORTED" },
  );
}
