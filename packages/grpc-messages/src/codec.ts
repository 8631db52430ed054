import { BoundedReader, MessageReader } from "./message-reader.js";
import { MessageWriter } from "./message-writer.js";

/** The part of a generated message class that decodes. */
export interface MessageDecoder<T> {
  // The generated code takes any reader of protobufjs; ours differs from its types in the 64-bit methods alone.
  decode(reader: never): T;
}

/** The part of a generated message class that encodes. */
export interface MessageEncoder<T> {
  encode(message: T, writer?: never): unknown;
}

/**
 * Reads a message. Its `bytes` fields are views of `bytes`.
 *
 * @param maxFields Most fields of the message and of all messages in it.
 * @throws Error when the bytes are not such a message, FieldLimitError for too many fields.
 */
export function decodeMessage<T>(type: MessageDecoder<T>, bytes: Uint8Array, maxFields?: number): T {
  const buffer = Buffer.isBuffer(bytes)
    ? bytes
    : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const reader = maxFields === undefined ? new MessageReader(buffer) : new BoundedReader(buffer, maxFields);
  return type.decode(reader as never);
}

/** Writes a message. */
export function encodeMessage<T>(type: MessageEncoder<T>, message: T): Buffer {
  const writer = new MessageWriter();
  type.encode(message, writer as never);
  return writer.finish(true);
}
