/* JSON as Triton writes it: with NaN, Infinity and 64-bit integers, which `JSON` cannot hold. */

/** A value that can be written. */
export type JsonInput =
  | string
  | number
  | bigint
  | boolean
  | readonly JsonInput[]
  | { readonly [name: string]: JsonInput | undefined };

/** Writes a value and leaves out undefined members. */
export function writeJson(value: JsonInput): string {
  if (typeof value === "string") return JSON.stringify(value);
  if (typeof value === "number") return Object.is(value, -0) ? "-0.0" : String(value);
  if (typeof value === "bigint" || typeof value === "boolean") return String(value);
  if (isArray(value)) return `[${value.map(writeJson).join(",")}]`;
  const members = Object.entries(value).filter(([, member]) => member !== undefined);
  return `{${members.map(([name, member]) => `${JSON.stringify(name)}:${writeJson(member!)}`).join(",")}}`;
}

/** A number as it stood in the text; its reader knows the type. */
export class NumberToken {
  constructor(readonly text: string) {}
}

/** Reads a text; its numbers become {@link NumberToken}s. */
export function readJson(text: string): unknown {
  const marked = text.replace(TOKENS, (token) => (token.startsWith('"') ? token : `"\\u0000#${token}"`));
  return JSON.parse(marked, (_name, value: unknown) =>
    typeof value === "string" && value.startsWith("\0#") ? new NumberToken(value.slice(2)) : value,
  );
}

const TOKENS = /"(?:[^"\\]|\\.)*"|NaN|-?Infinity|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g;

function isArray(value: JsonInput): value is readonly JsonInput[] {
  return Array.isArray(value);
}
