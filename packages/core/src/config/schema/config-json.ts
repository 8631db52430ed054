import type { ModelConfig } from "@tritonjs/protocol";
import {
  type FieldType,
  fieldsOf,
  isEnum,
  isMessage,
  type MessageSchema,
  type PlainMessage,
} from "./field-schema.js";
import { modelConfigSchema } from "./model-config-schema.js";

/**
 * Makes the object that `GET v2/models/M/config` prints. Names are in snake_case, in the order of the message's
 * definition. Scalars, lists and maps are always present; sub-messages and members of a oneof only if they are set.
 * 64-bit integers are plain numbers. Values that JSON cannot express as numbers are strings.
 */
export function toConfigJson(config: ModelConfig): Record<string, unknown> {
  return toJson(fieldsOf(config), modelConfigSchema);
}

function toJson(message: PlainMessage, { fields }: MessageSchema): PlainMessage {
  const json: PlainMessage = {};
  for (const { name, key, type, shape } of fields) {
    const value = message[key];
    if (value === undefined) continue;
    json[name] =
      shape === "repeated"
        ? (value as readonly unknown[]).map((element) => toJsonValue(type, element))
        : shape === "map"
          ? Object.fromEntries(
              Object.entries(value as PlainMessage).map(([k, v]) => [k, toJsonValue(type, v)]),
            )
          : toJsonValue(type, value);
  }
  return json;
}

function toJsonValue(type: FieldType, value: unknown): unknown {
  if (isMessage(type)) return toJson(value as PlainMessage, type);
  if (isEnum(type)) return Object.hasOwn(type.values, String(value)) ? value : enumNumber(value);
  if (typeof value !== "number") return value;
  if (!Number.isFinite(value)) return String(value);
  if (value === 0) return 0;
  return type === "float" ? shortFloat(value) : value;
}

/** Numbers without a name in the enumeration stay numbers. */
function enumNumber(value: unknown): unknown {
  return /^-?[0-9]+$/.test(String(value)) ? Number(value) : value;
}

/** Formats a float with as many digits as are needed to read the same float again: six, or else nine. */
function shortFloat(value: number): number {
  const six = Number(value.toPrecision(6));
  return Math.fround(six) === Math.fround(value) ? six : Number(value.toPrecision(9));
}
