const VARINT = 0;
const FIXED_64 = 1;
const DELIMITED = 2;
const GROUP_START = 3;
const GROUP_END = 4;
const FIXED_32 = 5;

/** Receives a field with a length: its number, and the begin and end of its bytes. */
export type FieldVisitor = (field: number, from: number, to: number) => void;

/**
 * Visits the fields with a length of the message in `bytes` from `from` to `to`, without decoding them. Stops at bytes
 * that are not a message: the decoder reports them later.
 *
 * @param visitOther is called with the number of each other field, and of each field in a group
 */
export function eachField(
  bytes: Uint8Array,
  from: number,
  to: number,
  visit: FieldVisitor,
  visitOther?: (field: number) => void,
): void {
  let at = from;
  let groups = 0;
  /** Reads a varint of at most 32 bits; the low bits of a longer one. */
  const varint = (): number => {
    let value = 0;
    for (let shift = 0; at < to; shift += 7) {
      const byte = bytes[at++]!;
      if (shift < 32) value |= (byte & 0x7f) << shift;
      if (byte < 0x80) return value >>> 0;
    }
    return 0;
  };
  while (at < to) {
    const tag = varint();
    if (visitOther !== undefined && ((tag & 7) !== DELIMITED || groups > 0)) visitOther(tag >>> 3);
    switch (tag & 7) {
      case VARINT:
        varint();
        break;
      case FIXED_64:
        at += 8;
        break;
      case DELIMITED: {
        const length = varint();
        if (length > to - at) return;
        if (groups === 0) visit(tag >>> 3, at, at + length);
        at += length;
        break;
      }
      case GROUP_START:
        groups++;
        break;
      case GROUP_END:
        groups--;
        break;
      case FIXED_32:
        at += 4;
        break;
      default:
        return;
    }
  }
}
