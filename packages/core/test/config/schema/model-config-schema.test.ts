import { fileURLToPath } from "node:url";
import protobuf from "protobufjs";
import { describe, expect, it } from "vitest";
import {
  type FieldType,
  isEnum,
  isMessage,
  type MessageSchema,
  modelConfigSchema,
} from "../../../src/config/model-config-schema.js";

const proto = fileURLToPath(new URL("../../../../protocol/proto/model_config.proto", import.meta.url));
const root = new protobuf.Root().loadSync(proto, { keepCase: true });

function messagesIn(schema: MessageSchema, found = new Map<string, MessageSchema>()) {
  found.set(schema.name, schema);
  for (const { type } of schema.fields) if (isMessage(type)) messagesIn(type, found);
  return found;
}

const typeName = (type: FieldType) => (typeof type === "string" ? type : `inference.${type.name}`);

describe("the table of configuration fields", () => {
  it.each([...messagesIn(modelConfigSchema).values()])(
    "has $name as the proto file defines it",
    ({ name, fields }) => {
      const defined = root.lookupType(`inference.${name}`);
      expect(
        fields.map((field) => [field.name, typeName(field.type), field.shape, field.mapKey, field.oneof]),
      ).toEqual(
        defined.fieldsArray.map((field) => {
          field.resolve();
          const shape = field.map ? "map" : field.repeated ? "repeated" : "one";
          const type = field.resolvedType?.fullName.slice(1) ?? field.type;
          return [
            field.name,
            type,
            shape,
            (field as { readonly keyType?: string }).keyType,
            field.partOf?.name,
          ];
        }),
      );
    },
  );

  it("has the values of each enumeration", () => {
    for (const { fields } of messagesIn(modelConfigSchema).values()) {
      for (const { type } of fields) {
        if (isEnum(type)) expect(type.values).toEqual(root.lookupEnum(`inference.${type.name}`).values);
      }
    }
  });
});
