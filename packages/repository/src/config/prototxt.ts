import { errorFor, type ModelConfig } from "@tritonjs/protocol";
import {
  emptyMessage,
  type FieldSchema,
  type FieldType,
  fieldsOf,
  hasPresence,
  isEnum,
  isMessage,
  type MessageSchema,
  message,
  modelConfigSchema,
  type PlainMessage,
  zeroOf,
} from "@tritonjs/protocol/config";
import { type TextError, TokenReader, Unreadable } from "./prototxt-tokens.js";

/** Largest text that is read, in bytes. No real configuration comes near it. */
export const MAX_PROTOTXT_BYTES = 2 * 1024 * 1024;

/**
 * Reads a `config.pbtxt`: protobuf's text format of `ModelConfig`. Missing fields have their defaults. Only the format
 * is checked, and nothing is completed.
 *
 * @param source path of the file, for the error
 * @throws TritonError INVALID_ARG with one line for each error, in protobuf's words, with line and column: `Error
 * parsing text-format inference.ModelConfig: 2:10: Message type "inference.ModelConfig" has no field named
 * "max_batch".`
 *
 * @example
 * ```ts
 * const config = readPrototxt('backend: "onnxruntime" max_batch_size: 8');
 * ```
 */
export function readPrototxt(text: string | Uint8Array, source?: string): ModelConfig {
  const { config, errors } = parsePrototxt(text);
  if (errors.length === 0) return config;
  const lines = errors.map(describe).join("\n");
  throw errorFor(
    "INVALID_CONFIG",
    source === undefined ? lines : `failed to read text proto from ${source}: ${lines}`,
  );
}

export function parsePrototxt(text: string | Uint8Array): {
  readonly config: ModelConfig;
  readonly errors: readonly TextError[];
} {
  const config = emptyMessage(modelConfigSchema);
  // The length in bytes is at least the length in characters.
  if (text.length > MAX_PROTOTXT_BYTES) {
    const tooLong = `cannot parse the text: expected at most ${MAX_PROTOTXT_BYTES} bytes, got more`;
    return { config, errors: [{ line: 1, column: 1, text: tooLong, field: "" }] };
  }
  const bytes =
    typeof text === "string"
      ? Buffer.from(text, "utf8")
      : Buffer.from(text.buffer, text.byteOffset, text.length);
  const reader = new TokenReader(bytes.toString("latin1"));
  try {
    while (!reader.isAt("end")) readField(reader, modelConfigSchema, fieldsOf(config));
  } catch (error) {
    if (!(error instanceof Unreadable)) throw error;
  }
  return { config, errors: reader.errors };
}

function describe({ line, column, text, field }: TextError): string {
  const where = field === "" ? "" : ` (at ${field})`;
  return `Error parsing text-format inference.${modelConfigSchema.name}: ${line}:${column}: ${text}${where}`;
}

function readField(reader: TokenReader, schema: MessageSchema, into: PlainMessage): void {
  const field = readFieldName(reader, schema);
  reader.path.push(field.name);
  checkNotSet(reader, schema, field, into);
  if (field.shape === "map" || isMessage(field.type)) reader.tryTake(":");
  else reader.take(":");
  if (field.shape !== "one" && reader.tryTake("[")) {
    if (!reader.tryTake("]")) {
      do readElement(reader, schema, field, into);
      while (!endsList(reader));
    }
  } else readElement(reader, schema, field, into);
  if (!reader.tryTake(";")) reader.tryTake(",");
  reader.path.pop();
}

function endsList(reader: TokenReader): boolean {
  if (reader.tryTake("]")) return true;
  reader.take(",");
  return false;
}

function readFieldName(reader: TokenReader, schema: MessageSchema): FieldSchema {
  if (reader.tryTake("[")) {
    let name = reader.takeIdentifier();
    while (reader.tryTake(".")) name += `.${reader.takeIdentifier()}`;
    reader.take("]");
    reader.fail(`Extension "${name}" is not defined or is not an extension of "inference.${schema.name}".`);
  }
  const name = reader.takeIdentifier();
  const field = schema.fields.find((one) => one.name === name);
  if (field === undefined)
    reader.fail(`Message type "inference.${schema.name}" has no field named "${name}".`);
  return field;
}

/** Rejects a second value or a second member of a oneof. A scalar that was set to its default may be set again. */
function checkNotSet(
  reader: TokenReader,
  schema: MessageSchema,
  field: FieldSchema,
  message: PlainMessage,
): void {
  if (field.shape !== "one") return;
  if (isSet(field, message[field.key])) {
    reader.fail(`Non-repeated field "${field.name}" is specified multiple times.`);
  }
  if (field.oneof === undefined) return;
  const other = schema.fields.find((one) => one.oneof === field.oneof && message[one.key] !== undefined);
  if (other !== undefined) {
    reader.fail(
      `Field "${field.name}" is specified along with field "${other.name}", another member of oneof "${field.oneof}".`,
    );
  }
}

function isSet(field: FieldSchema, value: unknown): boolean {
  if (value === undefined) return false;
  return hasPresence(field) || isMessage(field.type) || !Object.is(value, zeroOf(field.type));
}

function readElement(
  reader: TokenReader,
  schema: MessageSchema,
  field: FieldSchema,
  into: PlainMessage,
): void {
  if (field.shape === "map") readEntry(reader, schema, field, into[field.key] as PlainMessage);
  else if (field.shape === "one") into[field.key] = readValue(reader, field.type, field);
  else {
    const list = into[field.key] as unknown[];
    reader.path.push(list.length);
    list.push(readValue(reader, field.type, field));
    reader.path.pop();
  }
}

/** Reads an entry of a map: a message of its own, with the fields `key` and `value`. */
function readEntry(reader: TokenReader, schema: MessageSchema, field: FieldSchema, into: PlainMessage): void {
  const name = field.key.charAt(0).toUpperCase() + field.key.slice(1);
  const entrySchema = message(`${schema.name}.${name}Entry`, [
    ["key", field.mapKey ?? "string"],
    ["value", field.type],
  ]);
  const entry = readMessage(reader, entrySchema);
  const value = entry.value ?? emptyMessage(field.type as MessageSchema);
  // Any name may be a key, even a property name with a meaning in JavaScript.
  Object.defineProperty(into, String(entry.key), {
    value,
    enumerable: true,
    writable: true,
    configurable: true,
  });
}

function readMessage(reader: TokenReader, schema: MessageSchema): PlainMessage {
  const end = reader.tryTake("<") ? ">" : "}";
  if (end === "}") reader.take("{");
  const result = fieldsOf(emptyMessage(schema));
  while (!reader.looksAt(">") && !reader.looksAt("}")) readField(reader, schema, result);
  reader.take(end);
  return result;
}

const MAX: Readonly<Record<string, bigint>> = {
  int32: 2n ** 31n - 1n,
  int64: 2n ** 63n - 1n,
  uint32: 2n ** 32n - 1n,
  uint64: 2n ** 64n - 1n,
};

function readValue(reader: TokenReader, type: FieldType, field: FieldSchema): unknown {
  if (isMessage(type)) return readMessage(reader, type);
  if (isEnum(type)) return readEnum(reader, type.values, field.name);
  if (type === "string") return reader.takeString();
  if (type === "bool") return readBool(reader, field.name);
  if (type === "double") return reader.takeDouble();
  if (type === "float") return Math.fround(reader.takeDouble());
  const max = MAX[type]!;
  return Number(type.startsWith("u") ? reader.takeUnsigned(max) : reader.takeSigned(max));
}

function readBool(reader: TokenReader, name: string): boolean {
  if (reader.isAt("integer")) return reader.takeUnsigned(1n) === 1n;
  const value = reader.takeIdentifier();
  if (["true", "True", "t"].includes(value)) return true;
  if (["false", "False", "f"].includes(value)) return false;
  return reader.fail(`Invalid value for boolean field "${name}". Value: "${value}".`);
}

/** The name of the enumeration value. A number without a name is kept as digits. */
function readEnum(reader: TokenReader, values: Readonly<Record<string, number>>, name: string): string {
  if (reader.looksAt("-") || reader.isAt("integer")) {
    const number = Number(reader.takeSigned(MAX.int32!));
    return Object.keys(values).find((value) => values[value] === number) ?? String(number);
  }
  if (!reader.isAt("identifier")) reader.fail(`Expected integer or identifier, got: ${reader.shown}`);
  const value = reader.takeIdentifier();
  if (Object.hasOwn(values, value)) return value;
  return reader.fail(`Unknown enumeration value of "${value}" for field "${name}".`);
}

/** Writes a configuration as a `config.pbtxt`, from which the same one is read. Defaults are left out. */
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
