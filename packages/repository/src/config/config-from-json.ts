import { errorFor, type ModelConfig, type TritonError } from "@tritonjs/protocol";
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
  const value = typeof json === "string" ? new ProtoJsonReader(json).document() : json;
  if (!isObject(value)) throw errorFor("INVALID_CONFIG", ": Root element must be a message.");
  const config = reader.message(value, modelConfigSchema, "");
  if (reader.problems.length === 0) return config;
  throw errorFor("INVALID_CONFIG", reader.problems.join("\n"));
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

const CONTEXT = 20;

const TOKEN = "Unexpected token.";

/** Deepest nesting; protobuf's limit. */
const MAX_DEPTH = 100;

const SPACE = /[\t\n\v\f\r ]*/y;
const KEY = /[A-Za-z_$][A-Za-z0-9_$]*/y;
const KEYWORD = /true|false|null/y;
const NUMBER = /[-0-9][-+.0-9eE]*/y;
const LETTER = /[A-Za-z_$]/;

const KEYWORDS: Readonly<Record<string, unknown>> = { true: true, false: false, null: null };
const ESCAPES: Readonly<Record<string, string>> = { b: "\b", f: "\f", n: "\n", r: "\r", t: "\t" };

/**
 * Reads JSON as protobuf does for messages. Names need no quotes, quotes may be single, a comma may follow the last
 * element or member, and strings may contain line breaks. Faults have protobuf's text.
 */
class ProtoJsonReader {
  #at = 0;
  #depth = 0;

  constructor(private readonly text: string) {}

  document(): unknown {
    const value = this.#value();
    this.#space();
    if (this.#at < this.text.length) throw this.#fault("Parsing terminated before end of input.");
    return value;
  }

  #value(): unknown {
    this.#space();
    const character = this.text[this.#at];
    if (character === undefined) throw this.#fault("Unexpected end of string. Expected a value.");
    if (character === "{") return this.#nested(() => this.#object());
    if (character === "[") return this.#nested(() => this.#array());
    if (character === '"' || character === "'") return this.#string(character);
    const keyword = this.#match(KEYWORD);
    if (keyword !== undefined) return KEYWORDS[keyword];
    const number = this.#match(NUMBER);
    if (number !== undefined) return this.#number(number);
    throw this.#fault(LETTER.test(character) || "}],:".includes(character) ? TOKEN : "Expected a value.");
  }

  #nested<T>(read: () => T): T {
    if (++this.#depth > MAX_DEPTH) throw this.#fault("Message too deep.");
    this.#at++;
    const value = read();
    this.#depth--;
    return value;
  }

  #object(): Record<string, unknown> {
    const members: [string, unknown][] = [];
    this.#list("}", "Expected , or } after key:value pair.", () => {
      const name = this.#name();
      this.#space();
      if (!this.#skip(":")) throw this.#expected("Expected : between key:value pair.");
      members.push([name, this.#value()]);
    });
    return Object.fromEntries(members);
  }

  #name(): string {
    const quote = this.text[this.#at];
    if (quote === '"' || quote === "'") return this.#string(quote);
    const name = this.#match(KEY);
    if (name === undefined) throw this.#expected("Expected an object key or }.");
    return name;
  }

  #array(): unknown[] {
    const elements: unknown[] = [];
    this.#list("]", "Expected , or ] after array value.", () => elements.push(this.#value()));
    return elements;
  }

  /** Reads parts with a comma between them, up to `end`. */
  #list(end: string, expected: string, readPart: () => void): void {
    for (this.#space(); !this.#skip(end); this.#space()) {
      readPart();
      this.#space();
      if (this.#skip(end)) return;
      if (!this.#skip(",")) throw this.#expected(expected);
    }
  }

  #string(quote: string): string {
    const start = this.#at++;
    let value = "";
    for (;;) {
      const character = this.text[this.#at++];
      if (character === undefined) {
        this.#at = start;
        throw this.#fault("Closing quote expected in string.");
      }
      if (character === quote) return value;
      value += character === "\\" ? this.#escape() : character;
    }
  }

  /** Reads the character after a backslash. A character without a special meaning is kept as it is. */
  #escape(): string {
    const character = this.text[this.#at++] ?? "";
    if (character !== "u") return ESCAPES[character] ?? character;
    const code = this.#match(/[0-9A-Fa-f]{4}/y);
    if (code === undefined) throw this.#fault("Invalid escape sequence.");
    return String.fromCharCode(Number.parseInt(code, 16));
  }

  #number(text: string): number {
    const start = this.#at - text.length;
    const octal = /^-?0[0-9xX]/.test(text + (this.text[this.#at] ?? ""));
    const value = /^-?\d+(?:\.\d*)?(?:[eE][-+]?\d+)?$/.test(text) ? Number(text) : Number.NaN;
    if (!octal && Number.isFinite(value)) return value;
    this.#at = start;
    if (octal) throw this.#fault("Octal/hex numbers are not valid JSON values.");
    throw this.#fault(
      Number.isNaN(value) ? "Unable to parse number." : "Number exceeds the range of double.",
    );
  }

  #match(expression: RegExp): string | undefined {
    expression.lastIndex = this.#at;
    const found = expression.exec(this.text)?.[0];
    this.#at += found?.length ?? 0;
    return found;
  }

  #space(): void {
    this.#match(SPACE);
  }

  #skip(character: string): boolean {
    if (this.text[this.#at] !== character) return false;
    this.#at++;
    return true;
  }

  #expected(reason: string): TritonError {
    return this.#fault(this.#at < this.text.length ? reason : `Unexpected end of string. ${reason}`);
  }

  #fault(reason: string): TritonError {
    const start = Math.max(0, this.#at - CONTEXT);
    const shown = this.text.slice(start, this.#at + CONTEXT);
    return errorFor("INVALID_CONFIG", `${reason}\n${shown}\n${" ".repeat(this.#at - start)}^`);
  }
}
