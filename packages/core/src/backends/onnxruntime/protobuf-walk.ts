import type { ByteSource } from "./byte-source.js";

/** One field of a protobuf message: a number, or the place of its bytes. */
export type ProtobufField =
  | { readonly number: number; readonly value: number }
  | { readonly number: number; readonly start: number; readonly end: number };

/**
 * Walks over the fields of one protobuf message without reading their contents. A model of gigabytes costs as much as
 * its table of contents.
 *
 * @throws RangeError when the bytes are not a protobuf message.
 */
export function* walkMessage(source: ByteSource, start: number, end: number): Generator<ProtobufField> {
  let at = start;
  const varint = (): number => {
    let value = 0;
    let factor = 1;
    const bytes = source.read(at, Math.min(10, end - at));
    for (let i = 0; i < bytes.byteLength; i++) {
      value += (bytes[i]! & 0x7f) * factor;
      factor *= 128;
      if (bytes[i]! < 0x80) {
        at += i + 1;
        return value;
      }
    }
    throw new RangeError(`invalid number at byte ${at}`);
  };
  while (at < end) {
    const tag = varint();
    const number = Math.floor(tag / 8);
    const wireType = tag % 8;
    if (number === 0) throw new RangeError(`invalid field at byte ${at}`);
    if (wireType === 0) {
      yield { number, value: varint() };
    } else {
      const length = wireType === 2 ? varint() : wireType === 1 ? 8 : wireType === 5 ? 4 : Number.NaN;
      if (!(at + length <= end)) throw new RangeError(`invalid length at byte ${at}`);
      const field = { number, start: at, end: at + length };
      at += length;
      if (wireType === 2) yield field;
    }
  }
}
