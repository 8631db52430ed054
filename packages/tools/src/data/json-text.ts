import { invalidOption } from "./invalid-option.js";

/** Matches strings, and outside of them what JSON does not have or reads with too few digits. */
const TOKENS = /"(?:[^"\\]|\\.)*"|-?\b(?:NaN|Infinity|Inf)\b|-?\b\d{16,}\b(?![.eE])/gs;

/** Key of the objects that stand for such numbers until the text is parsed. */
const NUMBER = "\u0000number";

/**
 * Parses JSON with the numbers that files of input data may have beyond it: `NaN`, `Infinity`, `Inf`, and whole numbers
 * of any length, which become bigints.
 *
 * @throws TritonError INVALID_ARG that names the file.
 */
export function parseDataFile(text: string, file: string): unknown {
  const marked = text.replace(TOKENS, (token) =>
    token[0] === '"' ? token : JSON.stringify({ [NUMBER]: token }),
  );
  try {
    return JSON.parse(marked, marked === text ? undefined : restore);
  } catch (cause) {
    throw invalidOption(`${file}: expected JSON: ${(cause as Error).message}`, cause);
  }
}

function restore(_key: string, value: unknown): unknown {
  if (typeof value !== "object" || value === null || !(NUMBER in value)) return value;
  const text = String(value[NUMBER]);
  if (/\d/.test(text)) return BigInt(text);
  if (text.endsWith("NaN")) return Number.NaN;
  return text.startsWith("-") ? Number.NEGATIVE_INFINITY : Number.POSITIVE_INFINITY;
}
