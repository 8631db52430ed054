import type { RequestShare } from "@tritonjs/core/frontend";
import type { V2Request } from "@tritonjs/http/frontend";
import { checkPartCount, firstHeader, InputTooLarge, inTurn } from "@tritonjs/http/frontend";
import { TritonError } from "@tritonjs/protocol";
import { OpenAiError } from "../errors/openai-error.js";

/**
 * Reads the body of a request, which is a JSON object.
 *
 * @param memory share that counts the body
 * @throws OpenAiError 413 for a body above `maxBodySize` bytes or with too many values, 415 for a compressed one, 400 for a body that is not a
 * JSON object
 * @throws TritonError UNAVAILABLE for a body above the memory budget, ClientGone when the client leaves
 */
export async function readJsonObject(
  request: V2Request,
  memory: RequestShare,
  maxBodySize: number,
): Promise<Record<string, unknown>> {
  const encoding = firstHeader(request, "content-encoding") || "identity";
  if (encoding !== "identity") {
    throw new OpenAiError(415, `content-encoding: expected identity, got ${encoding}`, {
      code: "unsupported_content_encoding",
    });
  }
  const declared = Number(firstHeader(request, "content-length") ?? 0);
  if (declared > maxBodySize) throw tooLarge(maxBodySize);
  let body: Uint8Array;
  try {
    // A body without offsets of tensors is limited by its bytes.
    body = await request.readBody(memory, maxBodySize, 0);
  } catch (thrown) {
    throw thrown instanceof InputTooLarge ? tooLarge(maxBodySize) : thrown;
  }
  if (body.length > maxBodySize) throw tooLarge(maxBodySize);
  const value = body.length < LONG_BODY_BYTES ? parse(body) : await inTurn(request, () => parseLong(body));
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw new OpenAiError(400, "expected a JSON object as the body of the request", { code: "invalid_json" });
  }
  return value as Record<string, unknown>;
}

function tooLarge(maxBodySize: number): OpenAiError {
  const text = `the body of the request is too large: expected at most ${maxBodySize} bytes; the server's option maxBodySize raises the limit`;
  return new OpenAiError(413, text, { code: "content_too_large" });
}

/** A number that JSON does not have, as the value of a field. */
const NOT_A_NUMBER = /"(\w{1,64})"\s*:\s*(-?(?:NaN|Infinity))\b/;

/** Bytes from which a body waits for its turn of the event loop to be parsed. */
const LONG_BODY_BYTES = 64 * 1024;

function parseLong(body: Uint8Array): unknown {
  try {
    checkPartCount(body);
  } catch (thrown) {
    throw new OpenAiError(413, TritonError.from(thrown).message, { code: "content_too_large" });
  }
  return parse(body);
}

function parse(body: Uint8Array): unknown {
  let text = "";
  try {
    text = new TextDecoder("utf-8", { fatal: true }).decode(body);
    return JSON.parse(text);
  } catch (fault) {
    const [, param, value] = NOT_A_NUMBER.exec(text) ?? [];
    if (param !== undefined) {
      throw new OpenAiError(400, `'${param}': expected a number, got ${value}`, {
        param,
        code: "invalid_type",
      });
    }
    const text1 = `the body of the request is not valid JSON: ${(fault as Error).message}`;
    throw new OpenAiError(400, text1, { code: "invalid_json" });
  }
}
