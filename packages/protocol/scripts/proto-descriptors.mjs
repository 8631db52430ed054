// Descriptors of the services for server reflection.
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import protobuf from "protobufjs";
import "protobufjs/ext/descriptor.js";

const { FileDescriptorSet, FileDescriptorProto } = (await import("protobufjs/ext/descriptor.js")).default;

/** The two names of server reflection. */
const REFLECTION = "grpc.reflection.v1";
const OLD_REFLECTION = "grpc.reflection.v1alpha";

/** Source of a module with one descriptor for each package, without imports between them. */
export async function descriptorsModule(protoFolder) {
  const root = new protobuf.Root();
  for (const name of ["model_config.proto", "grpc_service.proto", "health.proto", "reflection.proto"]) {
    const text = await readFile(join(protoFolder, name), "utf8");
    protobuf.parse(text, root, { keepCase: true });
    if (name === "reflection.proto") {
      protobuf.parse(text.replace(REFLECTION, OLD_REFLECTION), root, { keepCase: true });
    }
  }
  root.resolveAll();
  const { file: files } = FileDescriptorSet.decode(
    FileDescriptorSet.encode(root.toDescriptor("proto3")).finish(),
  );
  for (const file of files) makeNamesAbsolute(root, file);
  const entries = files.map((file) => {
    const bytes = Buffer.from(FileDescriptorProto.encode(file).finish()).toString("base64");
    const services = file.service.map(({ name }) => `${file.package}.${name}`);
    return { name: file.name, services, symbols: symbolsOf(file), bytes };
  });
  return `export const descriptors = ${JSON.stringify(entries, null, 2)};\n`;
}

/** Names that reflection can look up: messages, enums, services and methods. */
function symbolsOf({ package: scope, messageType, enumType, service }) {
  const ofType = (outer, { name, nestedType, enumType: enums }) => [
    `${outer}.${name}`,
    ...nestedType.flatMap((nested) => ofType(`${outer}.${name}`, nested)),
    ...enums.map((one) => `${outer}.${name}.${one.name}`),
  ];
  return [
    ...messageType.flatMap((type) => ofType(scope, type)),
    ...enumType.map(({ name }) => `${scope}.${name}`),
    ...service.flatMap(({ name, method }) => [
      `${scope}.${name}`,
      ...method.map((one) => `${scope}.${name}.${one.name}`),
    ]),
  ];
}

/** Makes names absolute, as protoc writes them: types get a leading dot, and map entries their suffix. */
function makeNamesAbsolute(root, file) {
  const visit = (scope, type) => {
    const here = `${scope}.${type.name}`;
    for (const field of type.field) if (field.typeName) field.typeName = typeName(root, here, type, field);
    for (const nested of type.nestedType) {
      visit(here, nested);
      if (nested.options?.mapEntry) nested.name = entryName(nested.name);
    }
  };
  for (const type of file.messageType) visit(file.package, type);
  const absolute = (name) => root.lookup(file.package).lookup(name).fullName;
  for (const { method } of file.service) {
    for (const one of method) {
      one.inputType = absolute(one.inputType);
      one.outputType = absolute(one.outputType);
    }
  }
}

/** The name of a field's type. Map entries are in no namespace: look them up in the message that uses them. */
function typeName(root, here, { nestedType }, field) {
  const entry = nestedType.find(({ name, options }) => name === field.typeName && options?.mapEntry);
  if (entry !== undefined) return `.${here}.${entryName(entry.name)}`;
  const scope = root.lookup(here) ?? root.lookup(here.replace(/\.[^.]+$/, ""));
  return scope.lookup(field.typeName).fullName;
}

/** `priority_queue_policy` has the entry `PriorityQueuePolicyEntry`. */
function entryName(name) {
  return `${name.replace(/(?:^|_)([a-zA-Z])/g, (_, letter) => letter.toUpperCase())}Entry`;
}
