import { type Regex, Regexes, UNBOUNDED } from "./byte-regex.js";

/** Inclusive ranges of code points. */
export type CodePoints = readonly (readonly [number, number])[];

/** How a pattern's characters stand in the text: as they are, or inside a JSON string. */
export interface Letters {
  /** One character of the ranges, in exactly one spelling. */
  chars(ranges: CodePoints): Regex;
}

const LAST_CODE_POINT = 0x10ffff;
const SURROGATES = [0xd800, 0xdfff] as const;

/** The code points that are not in the ranges. */
export function otherCodePoints(ranges: CodePoints): CodePoints {
  const others: [number, number][] = [];
  let next = 0;
  for (const [from, to] of [...ranges].sort((a, b) => a[0] - b[0])) {
    if (from > next) others.push([next, from - 1]);
    next = Math.max(next, to + 1);
  }
  if (next <= LAST_CODE_POINT) others.push([next, LAST_CODE_POINT]);
  return others;
}

/** Characters as they are, in UTF-8. */
export class PlainLetters implements Letters {
  constructor(readonly regexes: Regexes) {}

  chars(ranges: CodePoints): Regex {
    this.regexes.budget.spend(ranges.length);
    return this.#union(ranges.flatMap((range) => utf8Sequences(range)));
  }

  /** One of several sequences. Sequences share a common beginning, so that few are tried for each byte. */
  #union(sequences: readonly Sequence[]): Regex {
    const { regexes } = this;
    const rests = new Map<string, [first: Sequence[number], rests: Sequence[]]>();
    for (const [first, ...rest] of sequences) {
      const key = String(first);
      const same = rests.get(key);
      if (same === undefined) rests.set(key, [first!, [rest]]);
      else same[1].push(rest);
    }
    const members = [...rests.values()].map(([[from, to], rests]) => {
      const byte = regexes.range(from, to);
      return rests[0]!.length === 0 ? byte : regexes.sequence(byte, this.#union(rests));
    });
    return regexes.any(...members);
  }
}

/** Short escapes of JSON, by code point. */
const SHORT_ESCAPES = new Map([..."\b\f\n\r\t"].map((char, i) => [char.charCodeAt(0), "bfnrt"[i]!]));
/**
 * White space that a text may have in a row between the parts of its JSON. Without a limit, a small model may write
 * nothing else until its tokens are spent.
 */
const MAX_WHITE_SPACE = 20;
/** Most digits of a number on each side of its point, so that no number is written without an end or is infinite. */
const MAX_DIGITS = 19;

/** The parts of JSON's text as expressions. */
export class JsonText implements Letters {
  readonly #plain: PlainLetters;
  /** White space between the parts, at most {@link MAX_WHITE_SPACE} characters in a row. */
  readonly space: Regex;
  /** Any character of a string, in any of its spellings. */
  readonly anyChar: Regex;
  /** Expressions of a character of a string that hold for every character which needs no escape. */
  readonly plainChars: ReadonlySet<Regex>;
  /** Any characters of a string in the spelling of {@link chars}. */
  readonly canonicalText: Regex;
  /** Strings in the spelling of {@link chars}: one for each value. */
  readonly canonicalString: Regex;
  /** Numbers without an exponent, a last 0 after the point, and `-0`: one for each value. They have at most 15 digits, which a double keeps. */
  readonly canonicalNumber: Regex;
  readonly string: Regex;
  readonly integer: Regex;
  readonly number: Regex;
  readonly boolean: Regex;
  readonly nothing: Regex;
  /** Unsigned numbers without an exponent. */
  readonly #decimal: Regex;
  /** Unsigned numbers without an exponent and with at most 15 digits, which a double keeps. */
  readonly #exactDecimal: Regex;

  constructor(readonly regexes = new Regexes()) {
    const { text, range, ranges, sequence, any, repeat, optional } = bound(regexes);
    this.#plain = new PlainLetters(regexes);
    this.space = repeat(
      ranges([
        [9, 10],
        [13, 13],
        [32, 32],
      ]),
      0,
      MAX_WHITE_SPACE,
    );
    const raw = this.#plain.chars([
      [0x20, 0x21],
      [0x23, 0x5b],
      [0x5d, LAST_CODE_POINT],
    ]);
    const hex = ranges(HEX);
    const bmp = any(
      sequence(ranges(HEX_BELOW_D), hex, hex, hex),
      sequence(ranges(LETTER_D), range(0x30, 0x37), hex, hex),
      sequence(ranges(HEX_ABOVE_D), hex, hex, hex),
    );
    const high = sequence(text("\\u"), ranges(LETTER_D), ranges(HEX_8_TO_B), hex, hex);
    const low = sequence(text("\\u"), ranges(LETTER_D), ranges(HEX_ABOVE_B), hex, hex);
    const escapes = any(...[...'"\\/bfnrt'].map(text));
    this.anyChar = any(
      raw,
      sequence(text("\\"), any(escapes, sequence(text("u"), bmp))),
      sequence(high, low),
    );
    const canonicalChar = this.chars([[0, LAST_CODE_POINT]]);
    this.plainChars = new Set([this.anyChar, canonicalChar]);
    this.canonicalText = repeat(canonicalChar, 0, UNBOUNDED);
    this.canonicalString = this.quoted(this.canonicalText);
    this.string = this.quoted(repeat(this.anyChar, 0, UNBOUNDED));
    const digit = range(0x30, 0x39);
    const whole = any(text("0"), sequence(range(0x31, 0x39), repeat(digit, 0, MAX_DIGITS - 1)));
    const fraction = sequence(text("."), repeat(digit, 1, MAX_DIGITS));
    const sign = optional(text("-"));
    this.#decimal = sequence(whole, optional(fraction));
    const exponent = sequence(
      any(text("e"), text("E")),
      optional(any(text("+"), text("-"))),
      repeat(digit, 1, 2),
    );
    this.integer = sequence(sign, whole);
    const nonzero = range(0x31, 0x39);
    const shortFraction = sequence(text("."), repeat(digit, 0, 5), nonzero);
    const zero = text("0");
    const short = sequence(nonzero, repeat(digit, 0, 8), shortFraction);
    const wholes = sequence(nonzero, repeat(digit, 0, 14));
    this.#exactDecimal = any(
      zero,
      wholes,
      sequence(any(zero, sequence(nonzero, repeat(digit, 0, 8))), text("."), repeat(digit, 1, 6)),
    );
    const signed = any(short, wholes, sequence(zero, shortFraction));
    this.canonicalNumber = any(zero, sequence(sign, signed));
    this.number = sequence(sign, this.#decimal, optional(exponent));
    this.boolean = any(text("true"), text("false"));
    this.nothing = text("null");
  }

  chars(ranges: CodePoints): Regex {
    const { regexes } = this;
    const parts: Regex[] = [];
    const plain: (readonly [number, number])[] = [];
    for (const [from, to] of ranges) {
      for (let code = from; code <= Math.min(to, 0x1f); code++) {
        const short = SHORT_ESCAPES.get(code);
        parts.push(
          regexes.text(short === undefined ? `\\u${code.toString(16).padStart(4, "0")}` : `\\${short}`),
        );
      }
      for (const code of [0x22, 0x5c]) {
        if (from <= code && code <= to) parts.push(regexes.text(`\\${String.fromCharCode(code)}`));
      }
      const raw: CodePoints = [
        [0x20, 0x21],
        [0x23, 0x5b],
        [0x5d, LAST_CODE_POINT],
      ];
      const cut = raw.map(([a, b]) => [Math.max(a, from), Math.min(b, to)] as const);
      plain.push(...cut.filter(([a, b]) => a <= b));
    }
    return regexes.any(...parts, this.#plain.chars(plain));
  }

  /** A string with a text in it, which is an expression over {@link chars} or {@link anyChar}. */
  quoted(text: Regex): Regex {
    const quote = this.regexes.text('"');
    return this.regexes.sequence(quote, text, quote);
  }

  /** A value as `JSON.stringify` writes it, but each character of a string in the spelling of {@link chars}. */
  literal(value: string | number | boolean | null): Regex {
    if (typeof value !== "string") return this.regexes.text(JSON.stringify(value));
    return this.quoted(this.spelled(value));
  }

  /** The characters of a text in the spelling of {@link chars}. */
  spelled(text: string): Regex {
    const codes = Array.from(text, (char) => char.codePointAt(0)!);
    return this.regexes.sequence(...codes.map((code) => this.chars([[code, code]])));
  }

  /** Numbers that are at least a limit, or above it. They have no exponent. */
  atLeast(limit: number, isExclusive: boolean): Regex {
    const { any, sequence, text, without } = bound(this.regexes);
    const minus = text("-");
    if (limit >= 0 && !(limit === 0 && !isExclusive)) return this.#above(limit, isExclusive);
    const small = without(this.#decimal, this.#above(-limit, !isExclusive));
    return any(this.#decimal, sequence(minus, small));
  }

  /** Numbers that are at most a limit, or below it. They have no exponent. */
  atMost(limit: number, isExclusive: boolean): Regex {
    const { any, sequence, text, without } = bound(this.regexes);
    const minus = text("-");
    if (limit <= 0 && !(limit === 0 && !isExclusive))
      return sequence(minus, this.#above(-limit, isExclusive));
    const small = without(this.#decimal, this.#above(limit, !isExclusive));
    return any(sequence(minus, this.#decimal), small);
  }

  /** Multiples of a number. They have no exponent. Undefined for a number with more than 15 digits after its point. */
  multipleOf(of: number): Regex | undefined {
    const [whole, fraction] = decimalDigits(of);
    if (fraction.length > 15) return undefined;
    const { sequence, text, both, optional } = bound(this.regexes);
    const multiple = this.regexes.multiple(BigInt(whole + fraction), fraction.length);
    return sequence(optional(text("-")), both(this.#exactDecimal, multiple));
  }

  /** Unsigned numbers above a limit, or equal to it if that is not excluded. */
  #above(limit: number, isExclusive: boolean): Regex {
    const { any, sequence, text, range, repeat, optional, both } = bound(this.regexes);
    const digit = range(0x30, 0x39);
    const digits = repeat(digit, 0, UNBOUNDED);
    const greater = (char: string) =>
      char === "9" ? this.regexes.none : range(char.charCodeAt(0) + 1, 0x39);
    const [whole, fraction] = decimalDigits(limit);
    // Digits after the point that are above those of the limit.
    const nonzero = sequence(repeat(text("0"), 0, UNBOUNDED), range(0x31, 0x39), digits);
    let after = isExclusive ? nonzero : digits;
    for (const char of [...fraction].reverse()) {
      after = any(sequence(text(char), after), sequence(greater(char), digits));
    }
    const isWhole = /^0*$/.test(fraction);
    const tail = sequence(text("."), after);
    const sameWhole = isWhole && !isExclusive ? optional(tail) : tail;
    const anyTail = optional(sequence(text("."), digits));
    const larger: Regex[] = [sequence(repeat(digit, whole.length + 1, UNBOUNDED), anyTail)];
    for (let i = 0; i < whole.length; i++) {
      const rest = repeat(digit, whole.length - i - 1, whole.length - i - 1);
      larger.push(sequence(text(whole.slice(0, i)), greater(whole[i]!), rest, anyTail));
    }
    return both(this.#decimal, any(...larger, sequence(text(whole), sameWhole)));
  }
}

/** Digits before and after the point of a number of at least 0. */
function decimalDigits(value: number): readonly [string, string] {
  const [mantissa = "0", exponent = "0"] = String(value).split("e");
  const [whole = "0", fraction = ""] = mantissa.split(".");
  const shift = Number(exponent);
  if (shift === 0) return [whole, fraction];
  if (shift > 0) {
    const padded = fraction.padEnd(shift, "0");
    return [(whole + padded.slice(0, shift)).replace(/^0+(?=\d)/, ""), padded.slice(shift)];
  }
  const padded = whole.padStart(1 - shift, "0");
  return [padded.slice(0, shift).replace(/^0+(?=\d)/, ""), padded.slice(shift) + fraction];
}

const HEX = [
  [0x30, 0x39],
  [0x41, 0x46],
  [0x61, 0x66],
] as const;
const HEX_BELOW_D = [
  [0x30, 0x39],
  [0x41, 0x43],
  [0x61, 0x63],
] as const;
const LETTER_D = [
  [0x44, 0x44],
  [0x64, 0x64],
] as const;
const HEX_ABOVE_D = [
  [0x45, 0x46],
  [0x65, 0x66],
] as const;
const HEX_8_TO_B = [
  [0x38, 0x39],
  [0x41, 0x42],
  [0x61, 0x62],
] as const;
const HEX_ABOVE_B = [
  [0x43, 0x46],
  [0x63, 0x66],
] as const;

/** The methods of a maker as functions. */
function bound(regexes: Regexes) {
  return {
    text: regexes.text.bind(regexes),
    range: regexes.range.bind(regexes),
    ranges: regexes.ranges.bind(regexes),
    sequence: regexes.sequence.bind(regexes),
    any: regexes.any.bind(regexes),
    both: regexes.both.bind(regexes),
    not: regexes.not.bind(regexes),
    without: regexes.without.bind(regexes),
    repeat: regexes.repeat.bind(regexes),
    optional: regexes.optional.bind(regexes),
  };
}

type Sequence = readonly (readonly [number, number])[];

/** Sequences of bytes for a range of code points in UTF-8, without surrogates. */
function utf8Sequences([from, to]: readonly [number, number]): Sequence[] {
  if (from > to) return [];
  const [low, high] = SURROGATES;
  if (from <= high && to >= low) return [...utf8Sequences([from, low - 1]), ...utf8Sequences([high + 1, to])];
  for (const limit of [0x7f, 0x7ff, 0xffff]) {
    if (from <= limit && limit < to)
      return [...utf8Sequences([from, limit]), ...utf8Sequences([limit + 1, to])];
  }
  if (to <= 0x7f) return [[[from, to]]];
  for (let i = 1; i < 4; i++) {
    const mask = (1 << (6 * i)) - 1;
    if ((from & ~mask) === (to & ~mask)) continue;
    if ((from & mask) !== 0)
      return [...utf8Sequences([from, from | mask]), ...utf8Sequences([(from | mask) + 1, to])];
    if ((to & mask) !== mask)
      return [...utf8Sequences([from, (to & ~mask) - 1]), ...utf8Sequences([to & ~mask, to])];
  }
  const first = new TextEncoder().encode(String.fromCodePoint(from));
  const last = new TextEncoder().encode(String.fromCodePoint(to));
  return [Array.from(first, (byte, i) => [byte, last[i]!] as const)];
}
