import { type ModelConfig, TritonError } from "@tritonjs/protocol";
import {
  emptyMessage,
  type FieldSchema,
  type FieldType,
  fieldsOf,
  isEnum,
  isMessage,
  type MessageSchema,
  type PlainMessage,
} from "./field-schema.js";
import { modelConfigSchema } from "./model-config-schema.js";
import { parseProtoJson } from "./proto-json.js";

/** Largest number of errors that are listed. */
const MAX_PROBLEMS = 20;

/**
 * Reads the JSON form of a configuration, as the `config` parameter of a load request has it. Names may be written as
 * in the proto file or in camelCase, with or without quotes. Numbers may be strings. Enumerations are given by name in
 * any case, or by number. Only the format is checked, and nothing is completed.
 *
 * @param json the text, or the object parsed from it
 * @throws TritonError INVALID_ARG with one line for each error, in protobuf's words: `(max_batch_size): invalid value
 * "x" for type TYPE_INT32`.
 */
export function configFromJson(json: string | Readonly<Record<string, unknown>>): ModelConfig {
  const reader = new JsonReader();
  const value = typeof json === "string" ? parseProtoJson(json) : json;
  if (!isObject(value))
    throw new TritonError("INVALID_ARG", ": Root element must be a message.", { reason: "INVALID_CONFIG" });
  const config = reader.message(value, modelConfigSchema, "");
  if (reader.problems.length === 0) return config;
  throw new TritonError("INVALID_ARG", reader.problems.join("\n"), { reason: "INVALID_CONFIG" });
}

class JsonReader {
  readonly problems: string[] = [];

  message<T extends object>(json: PlainMessage, schema: MessageSchema<T>, path: string): T {
    const message = emptyMessage(schema);
    for (const [name, value] of Object.entries(json)) {
      const field = schema.fields.find((one) => one.name === name || one.key === name);
      if (field === undefined) this.#problem(`${path === "" ? "" : `(${path}) `}${name}: Cannot find field.`);
      else if (value !== null) this.#field(fieldsOf(message), schema, field, value, path);
    }
    return message;
  }

  #field(
    message: PlainMessage,
    schema: MessageSchema,
    field: FieldSchema,
    value: unknown,
    path: string,
  ): void {
    const { name, key, type, shape, oneof } = field;
    const inner = path === "" ? name : `${path}.${name}`;
    if (
      oneof !== undefined &&
      schema.fields.some((one) => one.oneof === oneof && message[one.key] !== undefined)
    ) {
      this.#invalid(path, `oneof field '${oneof}' is already set. Cannot set '${name}'`, "oneof");
    } else if (shape === "repeated") {
      const list = Array.isArray(value) ? (value as unknown[]) : [value];
      message[key] = list.map((element, i) => this.#value(element, type, `${inner}[${i}]`));
    } else if (Array.isArray(value)) {
      this.#problem(
        `${path === "" ? "" : `(${path}) `}${name}: Proto field is not repeating, cannot start list.`,
      );
    } else if (shape === "map") {
      if (isObject(value)) message[key] = this.#map(value, field, inner);
      else this.#invalid(inner, JSON.stringify(value), "Map");
    } else message[key] = this.#value(value, type, inner);
  }

  #map(json: PlainMessage, { type, mapKey }: FieldSchema, path: string): PlainMessage {
    const entries = Object.entries(json).map(([key, value]) => {
      const inner = `${path}["${key}"]`;
      if (mapKey === "uint64") this.#integer(key, "uint64", inner);
      return [key, this.#value(value, type, inner)] as const;
    });
    return Object.fromEntries(entries);
  }

  #value(value: unknown, type: FieldType, path: string): unknown {
    if (isMessage(type)) {
      if (isObject(value)) return this.message(value, type, path);
      return this.#invalid(path, JSON.stringify(value), `type.googleapis.com/inference.${type.name}`);
    }
    if (isEnum(type)) return this.#enum(value, type.values, path);
    if (type === "string") return typeof value === "string" ? value : this.#wrong(value, type, path);
    if (type === "bool") {
      if (value === true || value === "true") return true;
      return value === false || value === "false" ? false : this.#wrong(value, type, path);
    }
    if (type === "float" || type === "double") {
      const number = this.#number(value);
      if (number === undefined) return this.#wrong(value, type, path);
      return type === "float" ? Math.fround(number) : number;
    }
    return this.#integer(value, type, path);
  }

  #enum(value: unknown, values: Readonly<Record<string, number>>, path: string): unknown {
    const named = Object.keys(values).find((name) =>
      typeof value === "string" ? name === value.toUpperCase().replaceAll("-", "_") : values[name] === value,
    );
    if (named !== undefined) return named;
    return Number.isInteger(value) ? String(value) : this.#wrong(value, "enum", path);
  }

  #number(value: unknown): number | undefined {
    if (typeof value === "number") return value;
    if (typeof value !== "string" || !/^(-?Infinity|NaN|[-+]?[0-9.][0-9.eE+-]*)$/.test(value))
      return undefined;
    const number = Number(value);
    return Number.isNaN(number) && value !== "NaN" ? undefined : number;
  }

  #integer(value: unknown, type: string, path: string): unknown {
    const number = this.#number(value);
    if (number === undefined || !Number.isInteger(number)) return this.#wrong(value, type, path);
    const bits = type.endsWith("64") ? 64 : 32;
    // The limits of 64 bits are not doubles: the nearest doubles represent them.
    const [min, max] = type.startsWith("u") ? [0, 2 ** bits] : [-(2 ** (bits - 1)), 2 ** (bits - 1)];
    const isInside = number >= min && (bits === 64 ? number <= max : number < max);
    return isInside ? (number === 0 ? 0 : number) : this.#wrong(value, type, path);
  }

  #wrong(value: unknown, type: string, path: string): undefined {
    return this.#invalid(path, JSON.stringify(value), `TYPE_${type.toUpperCase()}`);
  }

  #invalid(path: string, value: string, type: string): undefined {
    this.#problem(`${path === "" ? "" : `(${path})`}: invalid value ${value} for type ${type}`);
  }

  #problem(text: string): void {
    if (this.problems.length < MAX_PROBLEMS) this.problems.push(text);
  }
}

function isObject(value: unknown): value is PlainMessage {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
