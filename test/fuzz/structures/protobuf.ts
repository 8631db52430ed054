import { bytes } from "./bytes.js";
import { border, type MutationSource, pick, type Structure } from "./structure.js";

/** One field. A field with a length has the fields of its message, if its bytes are one, or the bytes. */
interface Field {
  number: number;
  wire: number;
  value: bigint;
  content: Uint8Array | Field[];
}

const DELIMITED = 2;
const SIZES: Readonly<Record<number, number>> = { 1: 8, 5: 4 };
const MAX_DEPTH = 6;

/** A protobuf message, whose nested messages are found by trying. Lengths fit what they count. */
export const protobuf: Structure = {
  mutate(input, source) {
    const fields = fieldsOf(input, 0);
    if (fields === undefined || source.random.chance(0.1)) return bytes.mutate(input, source);
    const list = pick(source.random, listsOf(fields));
    pick(source.random, list.length === 0 ? [addField] : CHANGES)(list, source);
    return bytesOf(fields);
  },
};

type Change = (fields: Field[], source: MutationSource) => void;

const at = (fields: readonly Field[], { random }: MutationSource): number => random.below(fields.length);

function addField(fields: Field[], source: MutationSource): void {
  const { random, other } = source;
  const borrowed = random.chance(0.6) ? fieldsOf(other, 0) : undefined;
  const list = borrowed && pick(random, listsOf(borrowed));
  const field = list?.[random.below(list.length)] ?? {
    number: 1 + random.below(20),
    wire: pick(random, [0, 1, 2, 2, 3, 4, 5]),
    value: BigInt.asUintN(64, border(random)),
    content: source.token(),
  };
  fields.splice(random.below(fields.length + 1), 0, field);
}

const CHANGES: readonly Change[] = [
  addField,
  (fields, source) => void fields.splice(at(fields, source), 1),
  function repeat(fields, source) {
    const field = fields[at(fields, source)]!;
    const times = source.random.chance(0.05) ? 300 : 1 + source.random.below(3);
    fields.push(...Array.from({ length: times }, () => structuredClone(field)));
  },
  function setValue(fields, source) {
    const field = fields[at(fields, source)]!;
    field.value = BigInt.asUintN(64, border(source.random));
  },
  changeContent,
  changeContent,
  function setToken(fields, source) {
    const field = fields[at(fields, source)]!;
    if (field.wire === DELIMITED) field.content = source.token();
  },
  function setNumber(fields, source) {
    fields[at(fields, source)]!.number =
      1 + source.random.below(source.random.chance(0.9) ? 20 : 2 ** 29 - 1);
  },
  function setWire(fields, source) {
    fields[at(fields, source)]!.wire = source.random.below(8);
  },
  function exchange(fields, source) {
    const [i, j] = [at(fields, source), at(fields, source)];
    [fields[i], fields[j]] = [fields[j]!, fields[i]!];
  },
];

function changeContent(fields: Field[], source: MutationSource): void {
  const field = fields[at(fields, source)]!;
  if (field.wire === DELIMITED) {
    field.content = bytes.mutate(
      Array.isArray(field.content) ? bytesOf(field.content) : field.content,
      source,
    );
  } else field.value = BigInt.asUintN(64, field.value + BigInt(source.random.below(5) - 2));
}

/** The list of a message's fields, and those of all messages in it. */
function listsOf(fields: Field[]): Field[][] {
  return [fields, ...fields.flatMap(({ content }) => (Array.isArray(content) ? listsOf(content) : []))];
}

/** The fields of a message; undefined for bytes that are none. */
function fieldsOf(input: Uint8Array, depth: number): Field[] | undefined {
  const fields: Field[] = [];
  let place = 0;
  const varint = (): bigint | undefined => {
    let value = 0n;
    for (let shift = 0n; shift < 70n && place < input.length; shift += 7n) {
      const byte = input[place++]!;
      value |= BigInt(byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
    return undefined;
  };
  while (place < input.length) {
    const tag = varint();
    if (tag === undefined || tag < 8n || tag > 0xffff_ffffn) return undefined;
    const field: Field = {
      number: Number(tag >> 3n),
      wire: Number(tag & 7n),
      value: 0n,
      content: input.subarray(0, 0),
    };
    const size = SIZES[field.wire];
    if (field.wire === 0) {
      const value = varint();
      if (value === undefined) return undefined;
      field.value = value;
    } else if (size !== undefined) {
      if (place + size > input.length) return undefined;
      const part = Buffer.from(input.subarray(place, place + size));
      field.value = size === 8 ? part.readBigUInt64LE() : BigInt(part.readUInt32LE());
      place += size;
    } else if (field.wire === DELIMITED) {
      const length = varint();
      if (length === undefined || length > BigInt(input.length - place)) return undefined;
      const content = input.subarray(place, place + Number(length));
      field.content = (depth < MAX_DEPTH && content.length > 1 && fieldsOf(content, depth + 1)) || content;
      place += Number(length);
    } else return undefined;
    fields.push(field);
  }
  return fields;
}

function bytesOf(fields: readonly Field[]): Buffer {
  const parts: Uint8Array[] = [];
  for (const { number, wire, value, content } of fields) {
    parts.push(varintOf((BigInt(number) << 3n) | BigInt(wire)));
    const size = SIZES[wire];
    if (size !== undefined) {
      const fixed = Buffer.alloc(8);
      fixed.writeBigUInt64LE(value);
      parts.push(fixed.subarray(0, size));
    } else if (wire === DELIMITED) {
      const inner = Array.isArray(content) ? bytesOf(content) : content;
      parts.push(varintOf(BigInt(inner.length)), inner);
    } else if (wire === 0) parts.push(varintOf(value));
  }
  return Buffer.concat(parts);
}

function varintOf(value: bigint): Buffer {
  const encoded: number[] = [];
  let left = value;
  for (; left > 0x7fn; left >>= 7n) encoded.push(Number(left & 0x7fn) | 0x80);
  encoded.push(Number(left));
  return Buffer.from(encoded);
}
