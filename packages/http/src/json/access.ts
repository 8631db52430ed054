import { TritonError } from "@tritonjs/protocol";
import {
  type JsonArray,
  JsonDouble,
  JsonObject,
  type JsonValue,
  PackedNumbers,
  PackedStrings,
} from "./json-value.js";
import { decodeText } from "./text.js";

/* Typed access with Triton's texts. `context` is Triton's prefix of the text: "Unable to parse 'shape'". */

const MAX_INT64 = 2n ** 63n - 1n;

/** A member of a value that may not be an object. */
export function find(value: JsonValue | undefined, name: string): JsonValue | undefined {
  return value instanceof JsonObject ? value.get(name) : undefined;
}

/** A required member. */
export function member(value: JsonValue, name: string, context = ""): JsonValue {
  const found = find(value, name);
  if (found === undefined) throw fault(context, `attempt to access non-existing object member '${name}'`);
  return found;
}

/** Members of an object. */
export function members(value: JsonValue, context = ""): JsonObject {
  if (!(value instanceof JsonObject)) throw fault(context, "attempt to get members for non-object");
  return value;
}

/** True for arrays in any form. */
export function isArray(value: JsonValue | undefined): value is JsonArray {
  return Array.isArray(value) || value instanceof PackedNumbers || value instanceof PackedStrings;
}

/** The value as an array. */
export function asArray(value: JsonValue, context = ""): JsonArray {
  if (!isArray(value)) throw fault(context, "attempt to access JSON non-array as array");
  return value;
}

/** The value as bytes of a string. */
export function asBytes(value: JsonValue, context = ""): Uint8Array {
  if (!(value instanceof Uint8Array)) throw fault(context, "attempt to access JSON non-string as string");
  return value;
}

/** The value as a string. Like all of Triton's names, it ends at a NUL. */
export function asText(value: JsonValue, context = ""): string {
  const bytes = asBytes(value, context);
  const end = bytes.indexOf(0);
  return decodeText(end < 0 ? bytes : bytes.subarray(0, end));
}

/** The value as a boolean. */
export function asBoolean(value: JsonValue, context = ""): boolean {
  if (typeof value !== "boolean") throw fault(context, "attempt to access JSON non-boolean as boolean");
  return value;
}

/** True for integers that fit an int64. */
export function isInteger(value: JsonValue): value is number | bigint {
  return typeof value === "number" || (typeof value === "bigint" && value <= MAX_INT64);
}

/** True for integers that fit a uint64. */
export function isUnsigned(value: JsonValue): value is number | bigint {
  return (typeof value === "number" || typeof value === "bigint") && value >= 0;
}

/** The value as an int64. */
export function asInteger(value: JsonValue, context = ""): number | bigint {
  if (!isInteger(value)) throw fault(context, "attempt to access JSON non-signed-integer as signed-integer");
  return value;
}

/** The value as a uint64. */
export function asUnsigned(value: JsonValue, context = ""): number | bigint {
  if (!isUnsigned(value)) {
    throw fault(context, "attempt to access JSON non-unsigned-integer as unsigned-integer");
  }
  return value;
}

/** The value as a double. */
export function asDouble(value: JsonValue, context = ""): number {
  if (value instanceof JsonDouble) return value.value;
  if (typeof value === "number" || typeof value === "bigint") return Number(value);
  throw fault(context, "attempt to access JSON non-number as double");
}

function fault(context: string, message: string): TritonError {
  return new TritonError("INTERNAL", context === "" ? message : `${context}: ${message}`, {
    reason: "MALFORMED_JSON",
  });
}
