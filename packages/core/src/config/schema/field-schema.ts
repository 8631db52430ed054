/** A scalar type of protobuf. Only the types of the configuration are listed. */
export type ScalarType = "string" | "bool" | "int32" | "int64" | "uint32" | "uint64" | "float" | "double";

/** An enumeration: its values by name. */
export interface EnumSchema {
  readonly kind: "enum";
  /** Name without the package, such as `ModelInput.Format`. */
  readonly name: string;
  readonly values: Readonly<Record<string, number>>;
}

/** A message: its fields in the order of their definition, which is also the order of the JSON form. */
export interface MessageSchema<T extends object = object> {
  readonly kind: "message";
  /** The type of such a message. The member never has a value. */
  readonly messageType?: T;
  /** Name without the package, such as `ModelVersionPolicy.Latest`. */
  readonly name: string;
  readonly fields: readonly FieldSchema[];
}

/** Type of a field, or of an element of it. */
export type FieldType = ScalarType | EnumSchema | MessageSchema;

/** One field of a message. */
export interface FieldSchema {
  /** Name in config.pbtxt and JSON: `max_batch_size`. */
  readonly name: string;
  /** Name in `ModelConfig`: `maxBatchSize`. */
  readonly key: string;
  /** Type of the value, of an element of a repeated field, or of the values of a map. */
  readonly type: FieldType;
  readonly shape: "one" | "repeated" | "map";
  /** Type of a map's keys. */
  readonly mapKey?: "string" | "uint64";
  /** The oneof of which the field is a member: at most one member is set, and a set one may have any value. */
  readonly oneof?: string;
  /** Absent, rather than 0, when not set: a field that Triton up to release 2.59 does not know or print. */
  readonly hidden?: true;
}

/** A row of the table: name of the field, type, and special properties. */
export type FieldRow = readonly [name: string, type: FieldType, special?: Special];
type Special = "repeated" | "map<string>" | "map<uint64>" | "hidden" | { readonly oneof: string };

/** Key of a field in `ModelConfig`, from its name: `maxBatchSize` from `max_batch_size`. */
type KeyOf<Name extends string> = Name extends `${infer First}_${infer Rest}`
  ? `${First}${Capitalize<KeyOf<Rest>>}`
  : Name;

/** Keys that rows have and the type lacks, and vice versa. */
type Mismatch<T, R extends readonly FieldRow[]> =
  | Exclude<KeyOf<R[number][0]>, keyof T>
  | Exclude<keyof T, KeyOf<R[number][0]>>;

/** Makes a message from its rows. */
export function message<T extends object>(name: string, rows: readonly FieldRow[]): MessageSchema<T> {
  return { kind: "message", name, fields: rows.map(toField) };
}

/**
 * Makes a message of type `T`. The compiler reports rows that `T` lacks, and keys of `T` without a row.
 *
 * @example `messageOf<ModelQueuePolicy>()("ModelQueuePolicy", rows)`
 */
export function messageOf<T extends object>() {
  return <const R extends readonly FieldRow[]>(
    name: string,
    rows: R & ([Mismatch<T, R>] extends [never] ? unknown : { readonly mismatch: Mismatch<T, R> }),
  ): MessageSchema<T> => message<T>(name, rows);
}

/** Makes an enumeration from its names. Their numbers count up from 0. */
export function enumeration(name: string, names: readonly string[]): EnumSchema {
  return { kind: "enum", name, values: Object.fromEntries(names.map((value, number) => [value, number])) };
}

function toField([name, type, special]: FieldRow): FieldSchema {
  const key = name.replace(/_([a-z0-9])/g, (_, letter: string) => letter.toUpperCase());
  const field = { name, key, type, shape: "one" as const };
  if (special === undefined) return field;
  if (special === "repeated") return { ...field, shape: "repeated" };
  if (special === "hidden") return { ...field, hidden: true };
  if (special === "map<string>") return { ...field, shape: "map", mapKey: "string" };
  if (special === "map<uint64>") return { ...field, shape: "map", mapKey: "uint64" };
  return { ...field, oneof: special.oneof };
}

/** True for a field that is absent unless it is set: messages and members of a oneof. */
export function hasPresence({ type, shape, oneof, hidden }: FieldSchema): boolean {
  return shape === "one" && (oneof !== undefined || hidden === true || isMessage(type));
}

export function isMessage(type: FieldType): type is MessageSchema {
  return typeof type !== "string" && type.kind === "message";
}

export function isEnum(type: FieldType): type is EnumSchema {
  return typeof type !== "string" && type.kind === "enum";
}

/** Any message as a plain object, by the keys of its fields. */
export type PlainMessage = Record<string, unknown>;

/** The message as a plain object, to read and write its fields by their keys. */
export function fieldsOf(message: object): PlainMessage {
  return message as PlainMessage;
}

/** The value of a field that is not set. Undefined for a field that is then absent. */
export function defaultValue(field: FieldSchema): unknown {
  if (field.shape === "repeated") return [];
  if (field.shape === "map") return {};
  if (hasPresence(field) || isMessage(field.type)) return undefined;
  return zeroOf(field.type);
}

/** The value 0 of a scalar or an enumeration. */
export function zeroOf(type: Exclude<FieldType, MessageSchema>): string | number | boolean {
  if (type === "string") return "";
  if (type === "bool") return false;
  if (typeof type === "string") return 0;
  return Object.keys(type.values)[0]!;
}

/** A message in which nothing is set. */
export function emptyMessage<T extends object>(schema: MessageSchema<T>): T {
  const empty: PlainMessage = {};
  for (const field of schema.fields) {
    const value = defaultValue(field);
    if (value !== undefined) empty[field.key] = value;
  }
  return empty as T;
}
