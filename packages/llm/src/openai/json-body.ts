import { isUtf8 } from "node:buffer";
import { JSONParser, TokenType } from "@streamparser/json";
import { loopTurns, MAX_JSON_OBJECTS, MAX_JSON_VALUES, type V2Request } from "@tritonjs/http/frontend";
import { invalidField, OpenAiError } from "./openai-error.js";

/** Bytes from which a body is parsed in turns of the event loop. A shorter one takes a millisecond. */
const LONG_BODY_BYTES = 64 * 1024;

/** Bytes that are parsed between two pauses. They take 20 µs as text, and 2 ms as brackets alone. */
const STEP_BYTES = 4 * 1024;

/** Bytes of a string or a number that are decoded together. */
const DECODED_BYTES = 16 * 1024;

/** A number that JSON does not have, as the value of a field. */
const NOT_A_NUMBER = /"(\w{1,64})"\s*:\s*(-?(?:NaN|Infinity))\b/;

/**
 * Parses the body of a request, a long one in turns of the event loop.
 *
 * @throws OpenAiError 400 for a body that is not a JSON object, 413 for one with too many values; ClientGone when the
 * client leaves
 */
export async function readJsonBody(
  client: Pick<V2Request, "gone">,
  body: Uint8Array,
): Promise<Record<string, unknown>> {
  const value =
    body.length < LONG_BODY_BYTES ? parse(body) : await loopTurns.read(client, () => parseSteps(body));
  if (typeof value === "object" && value !== null && !Array.isArray(value)) {
    return value as Record<string, unknown>;
  }
  throw new OpenAiError(400, "expected a JSON object as the body of the request", { code: "invalid_json" });
}

function parse(body: Uint8Array): unknown {
  let text = "";
  try {
    text = new TextDecoder("utf-8", { fatal: true }).decode(body);
    return JSON.parse(text);
  } catch (fault) {
    const [, param, value] = NOT_A_NUMBER.exec(text) ?? [];
    if (param !== undefined) {
      throw invalidField(param, `'${param}': expected a number, got ${value}`, "invalid_type");
    }
    throw notJson(fault);
  }
}

function* parseSteps(body: Uint8Array): Generator<void, unknown> {
  // The parser takes other bytes for incomplete characters.
  if (!isUtf8(body)) throw notJson(new Error("the encoded data is not valid UTF-8"));
  const parser = new JSONParser({
    paths: ["$"],
    stringBufferSize: DECODED_BYTES,
    numberBufferSize: DECODED_BYTES,
  });
  const counted = new PartCounter();
  parser.onToken = ({ token }) => counted.add(token);
  let value: unknown;
  parser.onValue = (whole) => {
    value = whole.value;
  };
  try {
    for (let at = 0; at < body.length; at += STEP_BYTES) {
      parser.write(body.subarray(at, at + STEP_BYTES));
      yield;
    }
    if (!parser.isEnded) parser.end();
  } catch (fault) {
    throw fault instanceof OpenAiError ? fault : notJson(fault);
  }
  return value;
}

/** Counts the parts of a document: one that costs the client two bytes takes a hundred bytes of memory. */
class PartCounter {
  #objects = 0;
  #values = 0;

  /** @throws OpenAiError 413 for more objects or values than a document may have */
  add(token: TokenType): void {
    if (token !== TokenType.COMMA && token !== TokenType.LEFT_BRACKET && token !== TokenType.LEFT_BRACE)
      return;
    if (token === TokenType.LEFT_BRACE && ++this.#objects > MAX_JSON_OBJECTS) {
      throw tooMany(MAX_JSON_OBJECTS, "objects");
    }
    if (++this.#values > MAX_JSON_VALUES) throw tooMany(MAX_JSON_VALUES, "values");
  }
}

function tooMany(most: number, parts: string): OpenAiError {
  const text = `request JSON: expected at most ${most} ${parts}, got more`;
  return new OpenAiError(413, text, { code: "content_too_large" });
}

function notJson(fault: unknown): OpenAiError {
  const why = `the body of the request is not valid JSON: ${(fault as Error).message}`;
  return new OpenAiError(400, why, { code: "invalid_json" });
}
