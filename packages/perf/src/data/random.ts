import { type DataType, elementByteSize, floatWriter, typedArrayFor } from "@tritonjs/protocol";

/** Pseudo-random numbers by a seed (mulberry32): the same seed gives the same numbers on every machine. */
export class Random {
  #state: number;

  constructor(seed: number) {
    this.#state = seed >>> 0;
  }

  /** Evenly between 0 and 1, both excluded. */
  uniform(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    let t = this.#state;
    t = Math.imul(t ^ (t >>> 15), t | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return (((t ^ (t >>> 14)) >>> 0) + 0.5) / 4294967296;
  }

  /** A whole number from 0 to `limit` - 1. */
  below(limit: number): number {
    return Math.floor(this.uniform() * limit);
  }

  /** Gaps between independent events, 1 on average. */
  exponential(): number {
    return -Math.log(this.uniform());
  }

  /**
   * The normal distribution with mean 0 and deviation 1, by the polar method: sines differ between versions of Node.
   */
  normal(): number {
    for (;;) {
      const x = 2 * this.uniform() - 1;
      const y = 2 * this.uniform() - 1;
      const square = x * x + y * y;
      if (square > 0 && square < 1) return x * Math.sqrt((-2 * Math.log(square)) / square);
    }
  }
}

/** perf_analyzer's characters. */
const CHARACTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789 .?!";

/**
 * Limit of random whole numbers, so that they are valid where a model looks them up, such as ids of tokens. Pixels
 * (UINT8) take all values.
 */
const INTEGER_LIMIT = 128;

/** The bytes of random elements: floats in [0, 1), whole numbers from 0 to 127 (UINT8 to 255), or characters. */
export function randomElements(datatype: DataType, count: number, random: Random): Uint8Array {
  if (datatype === "BYTES") return randomCharacters(count, random);
  const elements = new (typedArrayFor(datatype))(count);
  const next = nextElement(datatype, random);
  const out: { [index: number]: number | bigint } = elements;
  for (let i = 0; i < count; i++) out[i] = next();
  return bytesOf(elements);
}

/** Size of the unit that may be replaced alone: an element, or a character of a string. */
export const unitByteSize = (datatype: DataType): number =>
  datatype === "BYTES" ? 1 : elementByteSize(datatype);

function nextElement(datatype: DataType, random: Random): () => number | bigint {
  const fromNumber = floatWriter(datatype);
  if (fromNumber !== undefined) return () => fromNumber(random.uniform());
  switch (datatype) {
    case "BOOL":
      return () => random.below(2);
    case "UINT8":
      return () => random.below(256);
    case "INT64":
    case "UINT64":
      return () => BigInt(random.below(INTEGER_LIMIT));
    default:
      return () => random.below(INTEGER_LIMIT);
  }
}

function randomCharacters(count: number, random: Random): Uint8Array {
  const bytes = new Uint8Array(count);
  for (let i = 0; i < count; i++) bytes[i] = CHARACTERS.charCodeAt(random.below(CHARACTERS.length));
  return bytes;
}

const bytesOf = ({ buffer, byteOffset, byteLength }: ArrayBufferView): Uint8Array =>
  new Uint8Array(buffer, byteOffset, byteLength);
