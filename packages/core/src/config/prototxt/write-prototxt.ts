import type { ModelConfig } from "@tritonjs/protocol";
import {
  type FieldSchema,
  type FieldType,
  fieldsOf,
  hasPresence,
  isEnum,
  isMessage,
  type MessageSchema,
  type PlainMessage,
  zeroOf,
} from "../schema/field-schema.js";
import { modelConfigSchema } from "../schema/model-config-schema.js";

/**
 * Writes a configuration as a `config.pbtxt`. Reading it gives the same configuration. Fields with their default are
 * left out.
 */
export function writePrototxt(config: ModelConfig): string {
  return lines(fieldsOf(config), modelConfigSchema, "").join("");
}

function lines(message: PlainMessage, { fields }: MessageSchema, indent: string): string[] {
  return fields.flatMap((field) => fieldLines(field, message[field.key], indent));
}

function fieldLines(field: FieldSchema, value: unknown, indent: string): string[] {
  if (value === undefined) return [];
  const { name, type, shape } = field;
  if (shape === "map") {
    return Object.entries(value as PlainMessage).flatMap(([key, entry]) => {
      const inner = `${indent}  `;
      const shownKey = field.mapKey === "uint64" ? integer(Number(key), "uint64") : quote(key);
      return [
        `${indent}${name} {\n`,
        `${inner}key: ${shownKey}\n`,
        ...one("value", type, entry, inner),
        `${indent}}\n`,
      ];
    });
  }
  if (shape === "repeated") {
    const elements = value as readonly unknown[];
    if (isMessage(type)) return elements.flatMap((element) => one(name, type, element, indent));
    return elements.length === 0
      ? []
      : [`${indent}${name}: [${elements.map((element) => scalar(type, element)).join(", ")}]\n`];
  }
  if (!hasPresence(field) && !isMessage(type) && Object.is(value, zeroOf(type))) return [];
  return one(name, type, value, indent);
}

function one(name: string, type: FieldType, value: unknown, indent: string): string[] {
  if (!isMessage(type)) return [`${indent}${name}: ${scalar(type, value)}\n`];
  const inner = lines(value as PlainMessage, type, `${indent}  `);
  return inner.length === 0 ? [`${indent}${name} {}\n`] : [`${indent}${name} {\n`, ...inner, `${indent}}\n`];
}

function scalar(type: FieldType, value: unknown): string {
  if (type === "string") return quote(String(value));
  if (type === "bool" || isEnum(type)) return String(value);
  if (type === "float" || type === "double") return floating(Number(value));
  return integer(Number(value), type as string);
}

function floating(value: number): string {
  if (Number.isNaN(value)) return "nan";
  if (Math.abs(value) === Infinity) return value < 0 ? "-inf" : "inf";
  return Object.is(value, -0) ? "-0" : String(value);
}

/** Formats a 64-bit integer. The limits of 64 bits are not doubles, and the nearest double may exceed them. */
function integer(value: number, type: string): string {
  if (Number.isSafeInteger(value)) return String(value === 0 ? 0 : value);
  const max = type === "uint64" ? 2n ** 64n - 1n : 2n ** 63n - 1n;
  const whole = BigInt(Math.trunc(Number.isFinite(value) ? value : 0));
  return String(whole > max ? max : whole);
}

const ESCAPES: Readonly<Record<string, string>> = {
  '"': '\\"',
  "\\": "\\\\",
  "\n": "\\n",
  "\r": "\\r",
  "\t": "\\t",
};

function quote(text: string): string {
  // An unpaired surrogate has no bytes. It becomes the character to which it is decoded.
  const wellFormed = Buffer.from(text, "utf8").toString("utf8");
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these characters cannot appear in a text
  const escaped = wellFormed.replace(/["\\\x00-\x1f\x7f]/g, (c) => {
    return ESCAPES[c] ?? `\\${c.charCodeAt(0).toString(8).padStart(3, "0")}`;
  });
  return `"${escaped}"`;
}
