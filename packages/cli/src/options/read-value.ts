import { OptionError } from "./option-error.js";

const INT_MAX = 2n ** 31n - 1n;
const LONG_MAX = 2n ** 63n - 1n;

/**
 * Reads a 32-bit integer as C++ `stoi` does: the leading digits count, and the rest is ignored.
 *
 * @throws OptionError with tritonserver's text.
 */
export function readInteger(text: string): number {
  return Number(readDigits(text, INT_MAX));
}

/** Reads a 64-bit integer like {@link readInteger}. Beyond 2^53 it is rounded. */
export function readLong(text: string): number {
  return Number(readDigits(text, LONG_MAX));
}

/** Makes a reader of a 64-bit integer of at least `least`. */
export function readIntegerFrom(least: number) {
  return (text: string): number => {
    const value = readLong(text);
    if (value < least) throw new OptionError(`expected an integer of at least ${least}, got ${text}`);
    return value;
  };
}

/** Reads a floating point number at the start of the text. */
export function readDouble(text: string): number {
  const match = /^\s*[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?/.exec(text);
  if (match === null) throw invalid(text);
  return Number(match[0]);
}

/** Reads `true`, `on`, `1`, `false`, `off` or `0`, in any case. */
export function readBoolean(text: string): boolean {
  const value = text.toLowerCase();
  if (["true", "on", "1"].includes(value)) return true;
  if (["false", "off", "0"].includes(value)) return false;
  throw new OptionError(`invalid value for bool option: ${text}`);
}

/** Reads a number; `true` is 1 and `false` is 0. */
export function readLevel(text: string): number {
  const value = text.toLowerCase();
  if (value === "true") return 1;
  return value === "false" ? 0 : readInteger(text);
}

/** Makes a reader of one of several words, in any case. */
export function readChoice<W extends string>(words: Readonly<Record<W, true>>, complaint: string) {
  return (text: string): W => {
    const word = text.toLowerCase();
    if (!Object.hasOwn(words, word)) throw new OptionError(complaint);
    return word as W;
  };
}

function readDigits(text: string, limit: bigint): bigint {
  const match = /^\s*([+-]?\d+)/.exec(text);
  if (match === null) throw invalid(text);
  const value = BigInt(match[1]!.replace("+", ""));
  if (value > limit || value < -limit - 1n) {
    throw new OptionError(`Provided option value is out of bound. Got ${text}`);
  }
  return value;
}

function invalid(text: string): OptionError {
  return new OptionError(`Invalid option value. Got ${text}`);
}
