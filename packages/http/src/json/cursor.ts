import { TritonError } from "@tritonjs/protocol";
import { CARRIAGE_RETURN, LINE_FEED, SPACE, TAB } from "./ascii.js";

/** A position in a JSON text. Reading past the end yields `undefined`, which ends the document like NUL. */
export interface Cursor {
  readonly bytes: Uint8Array;
  /** The same memory, for native text functions. */
  readonly buffer: Buffer;
  at: number;
}

/** A cursor at `at`. */
export function cursorAt(bytes: Uint8Array, at: number): Cursor {
  return { bytes, buffer: Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength), at };
}

/** Moves past white space. */
export function skipWhitespace(cursor: Cursor): void {
  const { bytes } = cursor;
  let at = cursor.at;
  for (;;) {
    const code = bytes[at];
    if (code !== SPACE && code !== LINE_FEED && code !== CARRIAGE_RETURN && code !== TAB) break;
    at++;
  }
  cursor.at = at;
}

/** Moves past `code` if it comes next. */
export function consume(cursor: Cursor, code: number): boolean {
  if (cursor.bytes[cursor.at] !== code) return false;
  cursor.at++;
  return true;
}

/** Moves past the longest prefix of `text` that comes next; true when that is the whole `text`. */
export function consumeAll(cursor: Cursor, text: string): boolean {
  for (let i = 0; i < text.length; i++) if (!consume(cursor, text.charCodeAt(i))) return false;
  return true;
}

/** Faults of a JSON text, in the words of Triton's parser. */
export type SyntaxFault =
  | "The document is empty."
  | "The document root must not be followed by other values."
  | "Invalid value."
  | "Missing a name for object member."
  | "Missing a colon after a name of object member."
  | "Missing a comma or '}' after an object member."
  | "Missing a comma or ']' after an array element."
  | "Incorrect hex digit after \\u escape in string."
  | "The surrogate pair in string is invalid."
  | "Invalid escape character in string."
  | "Missing a closing quotation mark in string."
  | "Number too big to be stored in double."
  | "Miss fraction part in number."
  | "Miss exponent in number.";

/** The error of a JSON text with a fault at byte `at`. */
export function syntaxError(fault: SyntaxFault, at: number): TritonError {
  return new TritonError("INTERNAL", `failed to parse the request JSON buffer: ${fault} at ${at}`, {
    reason: "MALFORMED_JSON",
  });
}
