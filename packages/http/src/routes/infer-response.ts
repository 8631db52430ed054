import type { EncodedResponse } from "../encode/infer-response.js";
import { compress, responseEncoding } from "../encode/response-encoding.js";
import type { V2Response } from "../exchange/response.js";

/** The answer of an inference, compressed if the client prefers that. The header length counts uncompressed bytes. */
export function inferResponse(
  { json, tensors }: EncodedResponse,
  acceptEncoding: string | undefined,
): V2Response | Promise<V2Response> {
  const headers: Record<string, string> = {
    "content-type": tensors.length > 0 ? "application/octet-stream" : "application/json",
  };
  if (tensors.length > 0) headers["inference-header-content-length"] = String(json.length);
  const pieces = [json, ...tensors];
  const encoding = responseEncoding(acceptEncoding);
  if (encoding === "identity") return { status: 200, headers, body: tensors.length === 0 ? json : pieces };
  headers["content-encoding"] = encoding;
  return compress(Buffer.concat(pieces), encoding).then((body) => ({ status: 200, headers, body }));
}
