import { MAX_JSON_OBJECTS, MAX_JSON_VALUES } from "../limits.js";
import { BACKSLASH, COMMA, OPEN_BRACE, OPEN_BRACKET, QUOTE } from "./ascii.js";
import { tooMany } from "./read-packed.js";

/**
 * Counts the parts of a JSON document before `JSON.parse` makes them: one that costs the client two bytes takes a
 * hundred bytes of memory. A document that is not JSON may pass.
 *
 * @throws TritonError INVALID_ARG for more objects or values than a document may have.
 */
export function checkPartCount(bytes: Uint8Array): void {
  const { length } = bytes;
  let objects = 0;
  let values = 0;
  for (let at = 0; at < length; at++) {
    const code = bytes[at]!;
    if (code === QUOTE) at = closingQuote(bytes, at + 1);
    else if (code === COMMA || code === OPEN_BRACKET) values++;
    else if (code === OPEN_BRACE) {
      values++;
      if (++objects > MAX_JSON_OBJECTS) throw tooMany(MAX_JSON_OBJECTS, "objects");
    } else continue;
    if (values > MAX_JSON_VALUES) throw tooMany(MAX_JSON_VALUES, "values");
  }
}

/** Offset of the quote that closes a string whose content begins at `from`; the length of the text without one. */
function closingQuote(bytes: Uint8Array, from: number): number {
  let at = bytes.indexOf(QUOTE, from);
  while (at >= 0) {
    let before = at;
    while (before > from && bytes[before - 1] === BACKSLASH) before--;
    if ((at - before) % 2 === 0) return at;
    at = bytes.indexOf(QUOTE, at + 1);
  }
  return bytes.length;
}
