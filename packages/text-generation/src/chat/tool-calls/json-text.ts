import type { Reading, StreamedText } from "./streamed-text.js";

const SCALAR = /[^\s,;\]}]/;
const ESCAPES: Readonly<Record<string, string>> = { b: "\b", f: "\f", n: "\n", r: "\r", t: "\t" };

/**
 * Reads a JSON value and passes its characters on as they come. It follows brackets and strings to find the end, and
 * does not check the text between them. False if there is no value, or the text ends within it.
 */
export function* passJsonValue(text: StreamedText, pass: (piece: string) => void): Reading<boolean> {
  const first = yield* text.peek();
  if (first === "{" || first === "[" || first === '"') return yield* passNested(text, pass);
  const scalar = yield* text.takeWhile(SCALAR);
  pass(scalar);
  return scalar !== "";
}

function* passNested(text: StreamedText, pass: (piece: string) => void): Reading<boolean> {
  let depth = 0;
  let inString = false;
  let escaped = false;
  while (yield* text.more()) {
    const unread = text.unread;
    let at = 0;
    while (at < unread.length) {
      const character = unread[at++];
      if (escaped) escaped = false;
      else if (inString) {
        if (character === "\\") escaped = true;
        else if (character === '"') inString = false;
      } else if (character === '"') inString = true;
      else if (character === "{" || character === "[") depth++;
      else if (character === "}" || character === "]") depth--;
      if (depth === 0 && !inString) {
        pass(text.take(at));
        return true;
      }
    }
    pass(text.take(at));
  }
  return false;
}

/** Reads a JSON string and returns its value. Undefined if there is none, or the text ends within it. */
export function* readJsonString(text: StreamedText): Reading<string | undefined> {
  let value = "";
  const complete = yield* passJsonString(text, (piece) => {
    value += piece;
  });
  return complete ? value : undefined;
}

/** Reads a JSON string and passes its value on as it comes, never half of a character. */
export function* passJsonString(text: StreamedText, pass: (piece: string) => void): Reading<boolean> {
  if (!(yield* text.accept('"'))) return false;
  let half = "";
  const passWhole = (piece: string) => {
    const joined = half + piece;
    const last = joined.charCodeAt(joined.length - 1);
    half = last >= 0xd800 && last < 0xdc00 ? joined.slice(-1) : "";
    const whole = joined.slice(0, joined.length - half.length);
    if (whole !== "") pass(whole);
  };
  while (yield* text.more()) {
    const plain = /^[^"\\]+/.exec(text.unread)?.[0];
    if (plain !== undefined) {
      passWhole(text.take(plain.length));
      continue;
    }
    if (text.take(1) === '"') {
      if (half !== "") pass(half);
      return true;
    }
    if (!(yield* text.more())) break;
    passWhole(yield* readEscape(text));
  }
  if (half !== "") pass(half);
  return false;
}

function* readEscape(text: StreamedText): Reading<string> {
  const character = text.take(1);
  if (character !== "u") return ESCAPES[character] ?? character;
  let code = "";
  while (code.length < 4 && /[0-9a-fA-F]/.test(yield* text.peek())) code += text.take(1);
  return code.length === 4 ? String.fromCharCode(Number.parseInt(code, 16)) : `u${code}`;
}
