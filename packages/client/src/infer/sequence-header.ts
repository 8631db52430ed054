import type { CommonCallOptions, CommonClientOptions } from "../options/client-options.js";
import type { RequestOptions } from "../options/infer-options.js";

/** The headers of a call with the id of its sequence, if the client has a header for that. The call's own come last. */
export function withSequenceHeader(
  { sequenceHeader }: Pick<CommonClientOptions, "sequenceHeader">,
  { headers, sequence }: Pick<CommonCallOptions, "headers"> & Pick<RequestOptions, "sequence">,
): CommonCallOptions["headers"] {
  if (sequenceHeader === undefined || sequence === undefined) return headers;
  return { [sequenceHeader]: encodeURIComponent(String(sequence.id)), ...headers };
}

/** Whether a lost inference may be sent again. A second run of a sequence's step would change its state twice. */
export function isRepeatable(
  { retryLostInferences }: Pick<CommonClientOptions, "retryLostInferences">,
  { sequence }: Pick<RequestOptions, "sequence">,
): boolean {
  return retryLostInferences === true && sequence === undefined;
}
