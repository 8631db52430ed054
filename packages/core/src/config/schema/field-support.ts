import type { ModelConfig } from "@tritonjs/protocol";
import {
  type FieldSchema,
  fieldsOf,
  isMessage,
  type MessageSchema,
  type PlainMessage,
  zeroOf,
} from "./field-schema.js";
import { FIELD_SUPPORT, type FieldSupport } from "./field-support-table.js";
import { modelConfigSchema } from "./model-config-schema.js";

/** Lists set fields that cannot be honoured, one per line, each with what to do about it. */
export function fieldProblems(config: ModelConfig): string[] {
  return setFields(config).flatMap(([path, support]) => {
    const message = support.refused?.(config);
    return message === undefined ? [] : [`model '${config.name}': '${path}' ${message}`];
  });
}

/** Lists set fields that are accepted without an effect, one per line, each with the reason. The lines are logged. */
export function fieldNotes(config: ModelConfig): string[] {
  return setFields(config).flatMap(([path, { noEffect, refused }]) =>
    noEffect === undefined || refused?.(config) !== undefined
      ? []
      : [`model '${config.name}': '${path}' has no effect: ${noEffect}`],
  );
}

/** Rows of the table whose field is set. */
function setFields(config: ModelConfig): (readonly [path: string, support: FieldSupport])[] {
  const paths = new Set<string>();
  collect(fieldsOf(config), modelConfigSchema, "", paths);
  return Object.entries(FIELD_SUPPORT).filter(([path]) => paths.has(path));
}

/** Collects the paths of all fields that differ from their unset value. */
function collect(message: PlainMessage, { fields }: MessageSchema, prefix: string, paths: Set<string>): void {
  for (const field of fields) {
    const path = `${prefix}${field.name}`;
    for (const value of valuesOf(field, message[field.key])) {
      paths.add(path);
      if (isMessage(field.type)) collect(value as PlainMessage, field.type, `${path}.`, paths);
    }
  }
}

function valuesOf({ type, shape, oneof }: FieldSchema, value: unknown): readonly unknown[] {
  if (value === undefined) return [];
  if (shape === "repeated") return value as readonly unknown[];
  if (shape === "map") return Object.values(value as PlainMessage);
  const isDefault = !isMessage(type) && oneof === undefined && value === zeroOf(type);
  return isDefault ? [] : [value];
}

/** Paths of all fields of the message, followed by the fields of sub-messages: `input.reshape.shape`. */
export function fieldPaths(schema: MessageSchema = modelConfigSchema, prefix = ""): string[] {
  return schema.fields.flatMap(({ name, type }) => {
    const path = `${prefix}${name}`;
    return isMessage(type) ? [path, ...fieldPaths(type, `${path}.`)] : [path];
  });
}

/** The table entry of a field: its own row, or the row of the nearest enclosing message. */
export function supportOf(path: string): FieldSupport | undefined {
  for (let at = path; at !== ""; at = at.slice(0, Math.max(0, at.lastIndexOf(".")))) {
    const support = FIELD_SUPPORT[at];
    if (support !== undefined) return support;
  }
  return undefined;
}
