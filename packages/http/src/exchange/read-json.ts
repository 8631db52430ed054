import type { JsonValue } from "../json/json-value.js";
import { endJsonSteps, jsonSteps, parseJson } from "../json/parse-json.js";
import { DEFAULT_MAX_INPUT_SIZE, maxNumbers } from "../limits.js";
import { type Client, loopTurns } from "./loop-turns.js";

/** Bytes of a document from which it is read in turns of the event loop. A shorter one takes a millisecond at worst. */
const LONG_DOCUMENT_BYTES = 16 * 1024;

/** True for a document that {@link readJson} may read in several turns. */
export function isLongDocument(byteLength: number): boolean {
  return byteLength >= LONG_DOCUMENT_BYTES;
}

/**
 * Reads a JSON document, a long one in turns of the event loop.
 *
 * @param use takes the document, whose packed arrays are valid until it returns
 * @returns what `use` returned; a promise when the document takes more than this turn
 * @throws as `parseJson` and `use` do, and ClientGone when the client leaves before its document is read.
 */
export function readJson<T>(
  client: Client,
  bytes: Uint8Array,
  use: (json: JsonValue) => T,
  mostNumbers = maxNumbers(DEFAULT_MAX_INPUT_SIZE),
): T | Promise<T> {
  if (!isLongDocument(bytes.length)) return use(parseJson(bytes, mostNumbers));
  return loopTurns.read(client, () => {
    const step = jsonSteps(bytes, mostNumbers);
    return () => {
      const document = step();
      if (document === undefined) return undefined;
      const value = use(document.value);
      if (!loopTurns.hasRequests) endJsonSteps();
      return { value };
    };
  });
}
