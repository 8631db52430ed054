import {
  type DataType,
  elementCount,
  type FixedDataType,
  floatWriter,
  type Shape,
  Tensor,
  type TypedArray,
  typedArrayFor,
} from "@tritonjs/protocol";

/** SeededRandom numbers that are the same for the same seed. */
export class SeededRandom {
  #state: number;

  constructor(seed: number) {
    this.#state = seed >>> 0;
  }

  /** A number from 0 to 1, without 1 (mulberry32). */
  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    let mixed = this.#state;
    mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  }

  below(limit: number): number {
    return Math.floor(this.next() * limit);
  }

  shuffled<T>(items: readonly T[]): T[] {
    const shuffled = [...items];
    for (let i = shuffled.length - 1; i > 0; i--) {
      const j = this.below(i + 1);
      [shuffled[i], shuffled[j]] = [shuffled[j]!, shuffled[i]!];
    }
    return shuffled;
  }
}

const WORDS = ["one", "two", "three", "four", "a longer text", "é", "0", ""];

/** Makes a tensor of numbers from -1 to 1, of whole numbers from 0 to 9, or of words. Dynamic dimensions have `length`. */
export function randomTensor(datatype: DataType, dims: Shape, length: number, random: SeededRandom): Tensor {
  const shape = dims.map((dim) => (dim === -1 ? length : dim));
  const count = elementCount(shape);
  if (datatype === "BYTES") {
    const encoder = new TextEncoder();
    const texts = Array.from({ length: count }, () => encoder.encode(WORDS[random.below(WORDS.length)]));
    return Tensor.fromElements(datatype, shape, texts);
  }
  const isFloat = floatWriter(datatype) !== undefined || /^FP/.test(datatype);
  return filledBy(datatype, shape, () => {
    if (isFloat) return 2 * random.next() - 1;
    return random.below(datatype === "BOOL" ? 2 : 10);
  });
}

function filledBy(datatype: FixedDataType, shape: Shape, value: () => number | bigint): Tensor {
  const elements: TypedArray = new (typedArrayFor(datatype))(elementCount(shape));
  const write = floatWriter(datatype);
  for (let i = 0; i < elements.length; i++) {
    const one = value();
    if (typeof elements[i] === "bigint") elements[i] = BigInt(one);
    else elements[i] = write === undefined ? Number(one) : write(Number(one));
  }
  return Tensor.fromElements(datatype, shape, elements);
}

/** Largest floats of each type. */
const LARGEST: Readonly<Partial<Record<DataType, number>>> = {
  FP16: 65_504,
  BF16: 3.3895313892515355e38,
  FP32: 3.4028234663852886e38,
  FP64: Number.MAX_VALUE,
};

/** Tensors of a data type that hold one of its extremes in each element, with what they hold. */
export function extremesOf(datatype: DataType, shape: Shape): (readonly [what: string, tensor: Tensor])[] {
  if (datatype === "BYTES") {
    const filled = (bytes: Uint8Array) =>
      Tensor.fromElements(
        datatype,
        shape,
        Array.from({ length: elementCount(shape) }, () => bytes),
      );
    return [
      ["empty strings", filled(new Uint8Array())],
      ["bytes that are not UTF-8", filled(Uint8Array.of(0xff, 0xfe, 0))],
      ["strings of 64 kB", filled(new Uint8Array(65_536).fill(97))],
    ];
  }
  const all = (value: number | bigint) => filledBy(datatype, shape, () => value);
  const largest = LARGEST[datatype];
  if (largest !== undefined) {
    return [
      ["zeros", all(0)],
      ["the largest numbers", all(largest)],
      ["the smallest numbers", all(-largest)],
      ["infinities", all(Number.POSITIVE_INFINITY)],
      ["NaN", all(Number.NaN)],
    ];
  }
  if (datatype === "BOOL")
    return [
      ["false", all(0)],
      ["true", all(1)],
    ];
  const bits = BigInt(datatype.replace(/\D+/, ""));
  const [least, most] = datatype.startsWith("U")
    ? [0n, (1n << bits) - 1n]
    : [-(1n << (bits - 1n)), (1n << (bits - 1n)) - 1n];
  return [
    ["zeros", all(0n)],
    ["the largest numbers", all(most)],
    ["the smallest numbers", all(least)],
  ];
}
