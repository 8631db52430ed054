import { randomUUID } from "node:crypto";
import { ExactNumber, pythonFloat } from "./python-values.js";

const STRING_OR_NUMBER = /"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g;

/**
 * Parses JSON and keeps the numbers that JavaScript would print differently than Python: `2.0`, `1e16` and whole numbers
 * of more digits than a double has become an {@link ExactNumber}.
 *
 * @throws SyntaxError for a text that is not JSON
 */
export function parseExactly(text: string): unknown {
  const parsed: unknown = JSON.parse(text);
  const mark = randomUUID();
  let marked = false;
  const kept = text.replace(STRING_OR_NUMBER, (token) => {
    if (token.startsWith('"') || pythonNumber(token) === String(Number(token))) return token;
    marked = true;
    return `"${mark}${token}"`;
  });
  if (!marked) return parsed;
  return JSON.parse(kept, (_, value: unknown) => {
    if (typeof value !== "string" || !value.startsWith(mark)) return value;
    const token = value.slice(mark.length);
    return new ExactNumber(Number(token), pythonNumber(token));
  });
}

/** How Python prints a number that it reads from JSON. */
function pythonNumber(token: string): string {
  if (/[.eE]/.test(token)) return pythonFloat(Number(token));
  return token === "-0" ? "0" : token;
}
