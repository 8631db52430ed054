import { border, type MutationSource, pick, type Structure } from "./structure.js";

/** Bytes without a form. */
export const bytes: Structure = {
  mutate(input, source) {
    const change = input.length === 0 ? insertToken : pick(source.random, CHANGES);
    return change(Buffer.from(input), source);
  },
};

type Change = (input: Buffer, source: MutationSource) => Uint8Array;

const SPECIAL = [0, 1, 0x0a, 0x0d, 0x20, 0x22, 0x2d, 0x30, 0x39, 0x5b, 0x7b, 0x7f, 0x80, 0xc0, 0xfe, 0xff];

const insertToken: Change = (input, { random, token }) =>
  insert(input, random.below(input.length + 1), token());

const CHANGES: readonly Change[] = [
  function flipBit(input, { random }) {
    const at = random.below(input.length);
    input[at]! ^= 1 << random.below(8);
    return input;
  },
  function setByte(input, { random }) {
    input[random.below(input.length)] = random.chance(0.5) ? random.below(256) : pick(random, SPECIAL);
    return input;
  },
  function cut(input, { random }) {
    return input.subarray(0, random.below(input.length));
  },
  function remove(input, { random }) {
    const [from, to] = rangeOf(input, random);
    return Buffer.concat([input.subarray(0, from), input.subarray(to)]);
  },
  function repeat(input, { random }) {
    const [from, to] = rangeOf(input, random);
    const times = 1 + random.below(4);
    return insert(input, to, Buffer.concat(Array.from({ length: times }, () => input.subarray(from, to))));
  },
  function move(input, { random }) {
    const [from, to] = rangeOf(input, random);
    const part = Buffer.from(input.subarray(from, to));
    const rest = Buffer.concat([input.subarray(0, from), input.subarray(to)]);
    return insert(rest, random.below(rest.length + 1), part);
  },
  function insertRandom(input, { random }) {
    const part = Buffer.from(Array.from({ length: 1 + random.below(8) }, () => random.below(256)));
    return insert(input, random.below(input.length + 1), part);
  },
  insertToken,
  function overwriteWithToken(input, { random, token }) {
    const part = token();
    const at = random.below(input.length);
    part.slice(0, input.length - at).forEach((byte, i) => {
      input[at + i] = byte;
    });
    return input;
  },
  function setNumber(input, { random }) {
    const size = pick(random, [1, 2, 4, 8]);
    if (input.length < size) return input;
    const at = random.below(input.length - size + 1);
    const value = Buffer.alloc(8);
    value.writeBigUInt64LE(BigInt.asUintN(64, border(random)));
    const part = value.subarray(0, size);
    input.set(random.chance(0.5) ? part : part.toReversed(), at);
    return input;
  },
  function takeOfOther(input, { random, other }) {
    if (other.length === 0) return input;
    const [from, to] = rangeOf(other, random);
    const at = random.below(input.length + 1);
    const end = random.chance(0.5) ? at : Math.min(input.length, at + to - from);
    return Buffer.concat([input.subarray(0, at), other.subarray(from, to), input.subarray(end)]);
  },
  function joinWithOther(input, { random, other }) {
    const [at, from] = [random.below(input.length + 1), random.below(other.length + 1)];
    return Buffer.concat([input.subarray(0, at), other.subarray(from)]);
  },
];

function insert(input: Uint8Array, at: number, part: Uint8Array): Buffer {
  return Buffer.concat([input.subarray(0, at), part, input.subarray(at)]);
}

/** A range, mostly short. */
function rangeOf(input: Uint8Array, random: MutationSource["random"]): [from: number, to: number] {
  const from = random.below(input.length);
  const most = random.chance(0.8) ? Math.min(32, input.length - from) : input.length - from;
  return [from, from + 1 + random.below(most)];
}
