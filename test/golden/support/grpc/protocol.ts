import { fileURLToPath } from "node:url";
import protobuf from "protobufjs";
import { expandFills, type JsonMessage } from "./grpc-case.js";

const folder = fileURLToPath(new URL("../../../../packages/protocol/proto/", import.meta.url));

/** One remote procedure: its path and its message types. */
export interface Rpc {
  readonly path: string;
  readonly request: protobuf.Type;
  readonly response: protobuf.Type;
}

let root: protobuf.Root | undefined;

/** Finds a procedure by its name in the recordings: `ModelInfer`, `Health/Check`. */
export function findRpc(name: string): Rpc {
  root ??= new protobuf.Root().loadSync(
    ["grpc_service.proto", "health.proto"].map((file) => folder + file),
    { keepCase: true },
  );
  const service = name.startsWith("Health/") ? "grpc.health.v1.Health" : "inference.GRPCInferenceService";
  const method = root.lookupService(service).methods[name.replace("Health/", "")];
  if (method === undefined) throw new Error(`no procedure '${name}'`);
  method.resolve();
  return {
    path: `/${service}/${method.name}`,
    request: method.resolvedRequestType as protobuf.Type,
    response: method.resolvedResponseType as protobuf.Type,
  };
}

/** Bytes of a message written in the JSON mapping. */
export function encodeMessage(type: protobuf.Type, message: JsonMessage): Buffer {
  return Buffer.from(type.encode(type.fromObject(expandFills(message) as JsonMessage)).finish());
}

/** A message in the JSON mapping: proto field names, bytes as base64, 64-bit integers as strings, no defaults. */
export function decodeMessage(type: protobuf.Type, bytes: Uint8Array): JsonMessage {
  const plain = type.toObject(type.decode(bytes), {
    longs: String,
    enums: String,
    bytes: String,
    json: true,
  });
  return withoutDefaults(type, plain);
}

function withoutDefaults(type: protobuf.Type, message: Record<string, unknown>): Record<string, unknown> {
  const kept: Record<string, unknown> = {};
  for (const field of type.fieldsArray) {
    const value = message[field.name];
    if (value !== undefined && !isDefault(field.resolve(), value)) kept[field.name] = prune(field, value);
  }
  return kept;
}

function prune(field: protobuf.Field, value: unknown): unknown {
  if (!(field.resolvedType instanceof protobuf.Type)) return value;
  const type = field.resolvedType;
  const one = (entry: unknown): unknown => withoutDefaults(type, entry as Record<string, unknown>);
  if (Array.isArray(value)) return value.map(one);
  if (!field.map) return one(value);
  return Object.fromEntries(Object.entries(value as object).map(([key, entry]) => [key, one(entry)]));
}

/** Fields of a oneof and messages carry information even when they hold a default. */
function isDefault(field: protobuf.Field, value: unknown): boolean {
  if (Array.isArray(value)) return value.length === 0;
  if (field.map) return Object.keys(value as object).length === 0;
  if (field.partOf !== null || field.resolvedType instanceof protobuf.Type) return false;
  if (field.resolvedType instanceof protobuf.Enum) return value === field.resolvedType.valuesById[0];
  return value === "" || value === "0" || value === 0 || value === false;
}
