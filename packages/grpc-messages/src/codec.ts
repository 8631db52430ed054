import type { inference } from "#messages";
import { BoundedReader, MessageReader, PackingReader } from "./message-reader.js";
import { MessageWriter } from "./message-writer.js";

/** The decoding part of a generated message class. */
export interface MessageDecoder<T> {
  // The generated code accepts any reader of protobufjs. Ours differs from its types only in the 64-bit methods.
  decode(reader: never): T;
}

/** The encoding part of a generated message class. */
export interface MessageEncoder<T> {
  encode(message: T, writer?: never): unknown;
}

/**
 * Decodes a message. Its `bytes` fields are views of `bytes`.
 *
 * @param maxFields Most fields of the message with all nested messages.
 * @throws Error for bytes that are not such a message, FieldLimitError for too many fields.
 */
export function decodeMessage<T>(type: MessageDecoder<T>, bytes: Uint8Array, maxFields?: number): T {
  const buffer = asBuffer(bytes);
  const reader = maxFields === undefined ? new MessageReader(buffer) : new BoundedReader(buffer, maxFields);
  return type.decode(reader as never);
}

/**
 * Decodes a request as {@link decodeMessage} does, except for tensors of thousands of strings in `bytesContents`: those
 * are {@link WireStrings}.
 */
export function decodePacked<T>(type: MessageDecoder<T>, bytes: Uint8Array): T {
  return type.decode(new PackingReader(asBuffer(bytes)) as never);
}

function asBuffer(bytes: Uint8Array): Buffer {
  return Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

/** Encodes a message. */
export function encodeMessage<T>(type: MessageEncoder<T>, message: T): Buffer {
  const writer = new MessageWriter();
  type.encode(message, writer as never);
  return writer.finish(true);
}

/** Value of a request or response parameter. */
export type ParameterScalar = string | number | bigint | boolean;

/** Encodes a parameter: whole numbers as int64, other numbers as double. */
export function encodeParameter(value: ParameterScalar): inference.InferParameter.$Properties {
  switch (typeof value) {
    case "boolean":
      return { boolParam: value };
    case "string":
      return { stringParam: value };
    case "bigint":
      return { int64Param: value };
    default:
      return Number.isSafeInteger(value) ? { int64Param: value } : { doubleParam: value };
  }
}
