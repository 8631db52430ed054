import protobuf from "protobufjs/light.js";

/**
 * Makes types of messages.
 *
 * @param name namespace of the types
 * @param schema fields of each message as `name:number:type`, with `*` for a list and `%` for a map from strings
 * @param packed names of the lists that are written as one field
 */
export function messageRoot(
  name: string,
  schema: Readonly<Record<string, string>>,
  packed: RegExp,
): protobuf.Root {
  const messages = Object.entries(schema).map(([message, text]) => {
    const fields = text.split(" ").filter((field) => field !== "");
    const entries = fields.map((field) => fieldOf(field, packed));
    // Each type says its edition: a type without one drops fields that are written with their default, such as `false`.
    return [message, { edition: "proto2", fields: Object.fromEntries(entries) }];
  });
  return protobuf.Root.fromJSON({
    nested: { [name]: { nested: Object.fromEntries(messages) } },
  } as protobuf.INamespace);
}

function fieldOf(text: string, packed: RegExp): [string, object] {
  const [field, id, type] = text.split(":") as [string, string, string];
  const kind = { type: type.replace(/[*%]/, ""), id: Number(id) };
  if (type.endsWith("*"))
    return [field, { ...kind, rule: "repeated", options: { packed: packed.test(field) } }];
  return [field, type.endsWith("%") ? { ...kind, keyType: "string" } : kind];
}
