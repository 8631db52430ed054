import { OptionError } from "./option-error.js";

const INT_MAX = 2n ** 31n - 1n;
const LONG_MAX = 2n ** 63n - 1n;

/**
 * A 32-bit integer, read as C++ `stoi` does: as many digits as there are, the rest is not looked at.
 *
 * @throws OptionError with tritonserver's text.
 */
export function readInteger(text: string): number {
  return Number(readDigits(text, INT_MAX));
}

/** A 64-bit integer, read as {@link readInteger} does. Beyond 2^53 it is rounded. */
export function readLong(text: string): number {
  return Number(readDigits(text, LONG_MAX));
}

/** A 64-bit integer of at least `least`. */
export function readIntegerFrom(least: number) {
  return (text: string): number => {
    const value = readLong(text);
    if (value < least) throw new OptionError(`expected an integer of at least ${least}, got ${text}`);
    return value;
  };
}

/** A floating point number, of which the start is enough. */
export function readDouble(text: string): number {
  const match = /^\s*[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?/.exec(text);
  if (match === null) throw invalid(text);
  return Number(match[0]);
}

/** `true`, `on`, `1`, `false`, `off` or `0`, in any case. */
export function readBoolean(text: string): boolean {
  const value = text.toLowerCase();
  if (["true", "on", "1"].includes(value)) return true;
  if (["false", "off", "0"].includes(value)) return false;
  throw new OptionError(`invalid value for bool option: ${text}`);
}

/** A number, for which `true` stands for 1 and `false` for 0. */
export function readLevel(text: string): number {
  const value = text.toLowerCase();
  if (value === "true") return 1;
  return value === "false" ? 0 : readInteger(text);
}

/** One of several words, in any case. */
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
