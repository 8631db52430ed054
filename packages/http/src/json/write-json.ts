import { numberText } from "@tritonjs/protocol";
import { ByteWriter } from "./byte-writer.js";

/** JSON of answers other than inferences. Undefined members are left out. */
export type PlainJson =
  | string
  | number
  | bigint
  | boolean
  | null
  | readonly PlainJson[]
  | { readonly [name: string]: PlainJson | undefined };

/** A value as JSON in Triton's spelling. */
export function toJsonBytes(value: PlainJson): Buffer {
  const writer = new ByteWriter();
  writeJson(writer, value);
  return writer.bytes();
}

/** Writes a value as JSON in Triton's spelling. */
export function writeJson(writer: ByteWriter, value: PlainJson): void {
  if (typeof value === "string") writer.string(value);
  else if (typeof value === "number" || typeof value === "bigint") writer.ascii(numberText(value));
  else if (typeof value === "boolean" || value === null) writer.ascii(String(value));
  else if (isList(value)) {
    writer.ascii("[");
    value.forEach((element, index) => {
      if (index > 0) writer.ascii(",");
      writeJson(writer, element);
    });
    writer.ascii("]");
  } else writeObject(writer, value);
}

function writeObject(writer: ByteWriter, value: { readonly [name: string]: PlainJson | undefined }): void {
  let separator = "{";
  for (const [name, member] of Object.entries(value)) {
    if (member === undefined) continue;
    writer.ascii(separator).string(name).ascii(":");
    writeJson(writer, member);
    separator = ",";
  }
  writer.ascii(separator === "{" ? "{}" : "}");
}

function isList(value: object): value is readonly PlainJson[] {
  return Array.isArray(value);
}
