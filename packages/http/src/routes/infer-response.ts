import type { EncodedResponse } from "../encode/infer-response.js";
import { compress, responseEncoding } from "../encode/response-encoding.js";
import type { V2Response } from "../exchange/response.js";

/** Up to this size copying the tensors behind the JSON is cheaper than another write. */
const MAX_COPIED = 1 << 20;

/** The answer of an inference, compressed if the client prefers that. The header length counts uncompressed bytes. */
export async function inferResponse(
  { json, tensors }: EncodedResponse,
  acceptEncoding: string | undefined,
): Promise<V2Response> {
  const headers: Record<string, string> = {
    "content-type": tensors.length > 0 ? "application/octet-stream" : "application/json",
  };
  if (tensors.length > 0) headers["inference-header-content-length"] = String(json.length);
  const pieces = [json, ...tensors];
  const length = pieces.reduce((sum, piece) => sum + piece.length, 0);
  const encoding = responseEncoding(acceptEncoding);
  if (encoding !== "identity") {
    headers["content-encoding"] = encoding;
    return { status: 200, headers, body: await compress(Buffer.concat(pieces, length), encoding) };
  }
  if (tensors.length === 0) return { status: 200, headers, body: json };
  return { status: 200, headers, body: length <= MAX_COPIED ? Buffer.concat(pieces, length) : pieces };
}
