import { numberText } from "@tritonjs/protocol";

/** A value that the client can write as JSON. Undefined members are left out; typed arrays become arrays. */
export type JsonSource =
  | string
  | number
  | bigint
  | boolean
  | null
  | ArrayBufferView
  | readonly JsonSource[]
  | { readonly [name: string]: JsonSource | undefined };

/** Writes a value as JSON in Triton's spelling: bigints are integers, `NaN` and `Infinity` are literals. */
export function toJson(value: JsonSource): string {
  if (typeof value === "number" || typeof value === "bigint") return numberText(value);
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  if (isArray(value)) return `[${value.map(toJson).join(",")}]`;
  if (ArrayBuffer.isView(value)) {
    return toJson(Array.from(value as unknown as ArrayLike<number | bigint>));
  }
  const members = Object.entries(value).filter(
    (entry): entry is [string, JsonSource] => entry[1] !== undefined,
  );
  return `{${members.map(([name, member]) => `${JSON.stringify(name)}:${toJson(member)}`).join(",")}}`;
}

function isArray(value: object): value is readonly JsonSource[] {
  return Array.isArray(value);
}
