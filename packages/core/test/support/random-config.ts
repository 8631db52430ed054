import type { ModelConfig } from "@tritonjs/protocol";
import {
  emptyMessage,
  type FieldSchema,
  type FieldType,
  fieldsOf,
  isEnum,
  isMessage,
  type MessageSchema,
  modelConfigSchema,
  type PlainMessage,
} from "@tritonjs/protocol/config";

/** Returns numbers in [0, 1), the same ones for the same seed. */
export function randomSource(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** A configuration with random fields of the message set to random values of their type. */
export function randomConfig(random: () => number): ModelConfig {
  return randomMessage(modelConfigSchema, random) as unknown as ModelConfig;
}

function randomMessage(schema: MessageSchema, random: () => number): PlainMessage {
  const message = fieldsOf(emptyMessage(schema));
  const oneofs = new Set<string>();
  for (const field of schema.fields) {
    if (random() < 0.5 || (field.oneof !== undefined && oneofs.has(field.oneof))) continue;
    if (field.oneof !== undefined) oneofs.add(field.oneof);
    message[field.key] = randomField(field, random);
  }
  return message;
}

function randomField({ type, shape, mapKey }: FieldSchema, random: () => number): unknown {
  if (shape === "one") return randomValue(type, random);
  const values = Array.from({ length: Math.floor(random() * 3) }, () => randomValue(type, random));
  if (shape === "repeated") return values;
  const key = () => String(randomValue(mapKey ?? "string", random));
  return Object.fromEntries(values.map((value) => [key(), value]));
}

const STRINGS = [
  "",
  "x",
  'a "b" c',
  "it's",
  "\\",
  "\n\t\r\0\x7f",
  "é😀",
  "__proto__",
  "constructor",
  "# no comment",
];
const DOUBLES = [0, -0, 0.1, -1.5, 1 / 3, 1e300, 5e-324, Infinity, -Infinity, Number.NaN, 123456789];

function randomValue(type: FieldType, random: () => number): unknown {
  const pick = <T>(values: readonly T[]): T => values[Math.floor(random() * values.length)]!;
  if (isMessage(type)) return randomMessage(type, random);
  if (isEnum(type)) return random() < 0.1 ? pick(["99", "-7"]) : pick(Object.keys(type.values));
  if (type === "string") return pick(STRINGS);
  if (type === "bool") return random() < 0.5;
  if (type === "double") return pick(DOUBLES);
  if (type === "float") return Math.fround(pick(DOUBLES));
  const small = [0, 1, 7, 2 ** 31 - 1];
  if (type === "int32") return pick([...small, -1, -(2 ** 31)]);
  if (type === "uint32") return pick([...small, 2 ** 32 - 1]);
  if (type === "int64") return pick([...small, -1, Number.MAX_SAFE_INTEGER, 2 ** 63, -(2 ** 63)]);
  return pick([...small, Number.MAX_SAFE_INTEGER, 2 ** 60, 2 ** 64]);
}
