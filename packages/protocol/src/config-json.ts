import { type JsonSource, toJson as writeJson } from "./json.js";
import type { ModelConfig } from "./model-config.js";
import {
  type FieldType,
  fieldsOf,
  isEnum,
  isMessage,
  type MessageSchema,
  modelConfigSchema,
  type PlainMessage,
} from "./model-config-schema.js";

/**
 * Makes the object that `GET v2/models/M/config` prints. Names are in snake_case, in the order of the message's
 * definition. Scalars, lists and maps are always present; sub-messages and members of a oneof only if they are set.
 * 64-bit integers are plain numbers. Values that JSON cannot express as numbers are strings.
 *
 * @param wide makes the value of an integer beyond 2^53. @default Number, which rounds: the largest uint64 then exceeds
 * 64 bits. `String` keeps the digits, and so does the bigint itself, for a writer that knows bigints
 */
export function toConfigJson(
  config: ModelConfig,
  wide: (value: bigint) => unknown = Number,
): Record<string, unknown> {
  return toJson(fieldsOf(config), modelConfigSchema, wide);
}

/** Writes what {@link toConfigJson} makes as JSON, with all digits of every integer. */
export function configText(config: ModelConfig): string {
  return writeJson(toConfigJson(config, (value) => value) as { [name: string]: JsonSource });
}

function toJson(
  message: PlainMessage,
  { fields }: MessageSchema,
  wide: (value: bigint) => unknown,
): PlainMessage {
  const json: PlainMessage = {};
  for (const { name, key, type, shape } of fields) {
    const value = message[key];
    if (value === undefined) continue;
    json[name] =
      shape === "repeated"
        ? (value as readonly unknown[]).map((element) => toJsonValue(type, element, wide))
        : shape === "map"
          ? Object.fromEntries(
              Object.entries(value as PlainMessage).map(([k, v]) => [k, toJsonValue(type, v, wide)]),
            )
          : toJsonValue(type, value, wide);
  }
  return json;
}

function toJsonValue(type: FieldType, value: unknown, wide: (value: bigint) => unknown): unknown {
  if (isMessage(type)) return toJson(value as PlainMessage, type, wide);
  if (isEnum(type))
    return Object.hasOwn(type.values, String(value))
      ? value
      : /^-?[0-9]+$/.test(String(value))
        ? Number(value)
        : value;
  if (typeof value !== "number") return value;
  if (!Number.isFinite(value)) return String(value);
  if (value === 0) return 0;
  if (type === "float") return shortFloat(value);
  return type === "double" || Number.isSafeInteger(value) ? value : wide(wholeNumber(value, type));
}

/** A 64-bit integer. The nearest double to the largest one exceeds it. */
function wholeNumber(value: number, type: FieldType): bigint {
  const most = type === "uint64" ? 2n ** 64n - 1n : 2n ** 63n - 1n;
  const whole = BigInt(value);
  return whole > most ? most : whole;
}

/** Formats a float with as many digits as are needed to read the same float again: six, or else nine. */
function shortFloat(value: number): number {
  const six = Number(value.toPrecision(6));
  return Math.fround(six) === Math.fround(value) ? six : Number(value.toPrecision(9));
}
