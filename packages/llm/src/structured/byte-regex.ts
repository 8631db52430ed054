import { GrammarBudget } from "./grammar-budget.js";

/** Largest number of a repetition that has no end. */
export const UNBOUNDED = Number.POSITIVE_INFINITY;
/** Largest number of expressions that the searches for matches may derive, from one {@link Regexes.beginSearches} on. */
const MAX_SEARCH = 20_000;

/** A search that found neither a match nor that there is none. The expression counts as too complex. */
export class TooComplex extends Error {}

/**
 * A regular expression over bytes, which is matched by derivatives: the derivative by a byte is what may follow that
 * byte (Brzozowski 1964; Owens, Reppy and Turon 2009). So intersection and complement cost nothing to build, and only
 * the states that a text reaches are ever made. Equal expressions of a {@link Regexes} are the same object.
 */
export interface Regex {
  readonly id: number;
  /** True if the expression matches the empty text. */
  readonly nullable: boolean;
  /** True if a part is an intersection or a complement, so that it may have no match without being `none`. */
  readonly mayBeEmpty: boolean;
  /** Derivatives that were made, by byte. Most expressions need none. */
  derived: Map<number, Regex> | undefined;
  readonly form: Form;
}

type Form =
  | { readonly kind: "none" | "empty" }
  | { readonly kind: "byte"; readonly set: ByteSet }
  | { readonly kind: "then"; readonly first: Regex; readonly rest: Regex }
  | { readonly kind: "any" | "all"; readonly members: readonly Regex[] }
  | { readonly kind: "not"; readonly of: Regex }
  | { readonly kind: "repeat"; readonly of: Regex; readonly min: number; readonly max: number }
  | { readonly kind: "multiple"; readonly of: bigint; readonly rest: bigint; readonly digits: number };

/** Bytes as 8 words of 32 bits. */
type ByteSet = readonly number[];

/** Bytes of an expression without its members, and of one known derivative. */
const EXPRESSION_BYTES = 300;
const DERIVED_BYTES = 40;

/** Makes expressions. Those of two makers must not be mixed. */
export class Regexes {
  readonly #known = new Map<string, Regex>();
  readonly #firstBytes = new Map<Regex, readonly number[]>();
  readonly #hasMatch = new Map<Regex, boolean>();
  #searched = 0;

  /** Matches nothing. */
  readonly none: Regex;
  /** Matches the empty text. */
  readonly empty: Regex;
  /** Matches every text. */
  readonly all: Regex;

  /** @param budget counts the steps and bytes of all work with the expressions. @default without limits */
  constructor(readonly budget = new GrammarBudget()) {
    this.none = this.#make("none", { kind: "none" }, false, false);
    this.empty = this.#make("empty", { kind: "empty" }, true, false);
    this.all = this.repeat(this.range(0, 255), 0, UNBOUNDED);
  }

  /** Number of expressions that were made. */
  get size(): number {
    return this.#known.size;
  }

  /** One byte of a range. */
  range(from: number, to: number): Regex {
    return this.ranges([[from, to]]);
  }

  /** One byte of several ranges. */
  ranges(ranges: Iterable<readonly [number, number]>): Regex {
    this.budget.spend(1);
    const set = new Array<number>(8).fill(0);
    for (const [from, to] of ranges) {
      for (let byte = from; byte <= to; byte++) set[byte >> 5]! |= 1 << (byte & 31);
    }
    return this.#bytes(set);
  }

  #bytes(set: ByteSet): Regex {
    if (set.every((word) => word === 0)) return this.none;
    return this.#make(`b${set.join()}`, { kind: "byte", set }, false, false);
  }

  /** The bytes of a text in UTF-8. */
  text(text: string): Regex {
    return this.bytes(new TextEncoder().encode(text));
  }

  bytes(bytes: Uint8Array): Regex {
    let regex = this.empty;
    for (let i = bytes.length - 1; i >= 0; i--)
      regex = this.sequence(this.range(bytes[i]!, bytes[i]!), regex);
    return regex;
  }

  /** One after the other. */
  sequence(...parts: readonly Regex[]): Regex {
    return parts.reduceRight((rest, first) => this.#pair(first, rest), this.empty);
  }

  #pair(first: Regex, rest: Regex): Regex {
    if (first === this.none || rest === this.none) return this.none;
    if (first === this.empty) return rest;
    if (rest === this.empty) return first;
    if (first.form.kind === "then") return this.#pair(first.form.first, this.#pair(first.form.rest, rest));
    return this.#make(
      `t${first.id},${rest.id}`,
      { kind: "then", first, rest },
      first.nullable && rest.nullable,
      first.mayBeEmpty || rest.mayBeEmpty,
    );
  }

  /** One of several. */
  any(...members: readonly Regex[]): Regex {
    this.budget.spend(members.length);
    const found = new Set<Regex>();
    let bytes: number[] | undefined;
    const add = (one: Regex): void => {
      if (one.form.kind === "any") for (const member of one.form.members) add(member);
      else if (one.form.kind === "byte") {
        const { set } = one.form;
        bytes = bytes === undefined ? [...set] : bytes.map((word, i) => word | set[i]!);
      } else if (one !== this.none) found.add(one);
    };
    for (const member of members) add(member);
    this.budget.spend(2 * found.size);
    if (bytes !== undefined) found.add(this.#bytes(bytes));
    if (found.has(this.all)) return this.all;
    const all = [...found].sort((a, b) => a.id - b.id);
    if (all.length === 0) return this.none;
    if (all.length === 1) return all[0]!;
    return this.#make(
      `o${ids(all)}`,
      { kind: "any", members: all },
      all.some((one) => one.nullable),
      all.some((one) => one.mayBeEmpty),
    );
  }

  /** Texts that all of several match. */
  both(...members: readonly Regex[]): Regex {
    this.budget.spend(members.length);
    const found = new Set<Regex>();
    const add = (one: Regex): void => {
      if (one.form.kind === "all") for (const member of one.form.members) add(member);
      else if (one !== this.all) found.add(one);
    };
    for (const member of members) add(member);
    this.budget.spend(2 * found.size);
    if (found.has(this.none)) return this.none;
    const all = [...found].sort((a, b) => a.id - b.id);
    if (all.length === 0) return this.all;
    if (all.length === 1) return all[0]!;
    const nullable = all.every((one) => one.nullable);
    if (found.has(this.empty)) return nullable ? this.empty : this.none;
    return this.#make(`a${ids(all)}`, { kind: "all", members: all }, nullable, true);
  }

  /** Texts that the expression does not match. */
  not(of: Regex): Regex {
    if (of.form.kind === "not") return of.form.of;
    if (of === this.none) return this.all;
    if (of === this.all) return this.none;
    return this.#make(`n${of.id}`, { kind: "not", of }, !of.nullable, true);
  }

  /** The first without the second. */
  without(kept: Regex, dropped: Regex): Regex {
    return this.both(kept, this.not(dropped));
  }

  repeat(of: Regex, min: number, max: number): Regex {
    if (max === 0 || of === this.empty) return this.empty;
    if (of === this.none) return min === 0 ? this.empty : this.none;
    const least = of.nullable ? 0 : min;
    if (least === 1 && max === 1) return of;
    const form = { kind: "repeat", of, min: least, max } as const;
    return this.#make(`r${of.id},${least},${max}`, form, least === 0, of.mayBeEmpty);
  }

  optional(of: Regex): Regex {
    return this.any(of, this.empty);
  }

  /** Allows the same beginnings of at most `length` bytes: a repetition that cannot end within them has no end. */
  endless(regex: Regex, length: number, known = new Map<Regex, Regex>()): Regex {
    let endless = known.get(regex);
    if (endless === undefined) {
      endless = this.#endless(regex, length, known);
      known.set(regex, endless);
    }
    return endless;
  }

  #endless(regex: Regex, length: number, known: Map<Regex, Regex>): Regex {
    this.budget.spend(1);
    const { form } = regex;
    const inner = (one: Regex) => this.endless(one, length, known);
    if (form.kind === "then") return this.#pair(inner(form.first), inner(form.rest));
    if (form.kind === "any") return this.any(...form.members.map(inner));
    if (form.kind !== "repeat" || form.max < length) return regex;
    return this.repeat(form.of, Math.min(form.min, length), UNBOUNDED);
  }

  /**
   * Decimal digits, perhaps with a point, whose number is a multiple of `of / 10 ** scale`.
   *
   * @param of an integer above 0
   * @param scale largest number of digits after the point
   */
  multiple(of: bigint, scale: number): Regex {
    return this.#multiple(of * 1n, 0n, -1 - scale);
  }

  /** `digits` is `-1 - scale` before the point, and then the number of digits that may still follow. */
  #multiple(of: bigint, rest: bigint, digits: number): Regex {
    const left = digits < 0 ? -1 - digits : digits;
    const nullable = (rest * 10n ** BigInt(left)) % of === 0n;
    return this.#make(`m${of},${rest},${digits}`, { kind: "multiple", of, rest, digits }, nullable, true);
  }

  /** The rest that may follow a byte. */
  derive(regex: Regex, byte: number): Regex {
    let derived = regex.derived?.get(byte);
    if (derived === undefined) {
      this.budget.spend(1);
      derived = this.#derive(regex, byte);
      this.budget.hold(DERIVED_BYTES);
      regex.derived ??= new Map();
      regex.derived.set(byte, derived);
    }
    return derived;
  }

  #derive({ form }: Regex, byte: number): Regex {
    switch (form.kind) {
      case "none":
      case "empty":
        return this.none;
      case "byte":
        return has(form.set, byte) ? this.empty : this.none;
      case "then": {
        const next = this.#pair(this.derive(form.first, byte), form.rest);
        return form.first.nullable ? this.any(next, this.derive(form.rest, byte)) : next;
      }
      case "any":
        this.budget.spend(form.members.length >> 2);
        return this.any(...form.members.map((one) => this.derive(one, byte)));
      case "all": {
        this.budget.spend(form.members.length >> 2);
        const next: Regex[] = [];
        for (const one of form.members) {
          const derived = this.derive(one, byte);
          if (derived === this.none) return this.none;
          next.push(derived);
        }
        return this.both(...next);
      }
      case "not":
        return this.not(this.derive(form.of, byte));
      case "repeat": {
        const next = this.derive(form.of, byte);
        if (next === this.none) return next;
        return this.#pair(next, this.repeat(form.of, Math.max(form.min - 1, 0), form.max - 1));
      }
      case "multiple": {
        const { of, rest, digits } = form;
        if (byte === POINT) return digits < 0 ? this.#multiple(of, rest, -1 - digits) : this.none;
        if (byte < ZERO || byte > NINE || digits === 0) return this.none;
        const next = (rest * 10n + BigInt(byte - ZERO)) % of;
        return this.#multiple(of, next, digits > 0 ? digits - 1 : digits);
      }
    }
  }

  /** Resets the limit of searches. Called before each grammar and each mask. */
  beginSearches(): void {
    this.#searched = 0;
  }

  /**
   * True if a text matches.
   *
   * @throws TooComplex if the searches took too long
   */
  hasMatch(regex: Regex): boolean {
    if (!regex.mayBeEmpty) return regex !== this.none;
    const known = this.#hasMatch.get(regex);
    if (known !== undefined) return known;
    // Depth first, because a match is what is expected. Everything on the way to a match has one.
    const seen = new Set<Regex>([regex]);
    const way: { readonly at: Regex; readonly left: number[] }[] = [
      { at: regex, left: [...this.#startsOf(regex)] },
    ];
    const settle = (found: boolean): boolean => {
      if (found) for (const { at } of way) this.#hasMatch.set(at, true);
      else for (const at of seen) this.#hasMatch.set(at, false);
      return found;
    };
    if (regex.nullable) return settle(true);
    for (let step = way.at(-1); step !== undefined; step = way.at(-1)) {
      this.budget.spend(1);
      const byte = step.left.pop();
      if (byte === undefined) {
        way.pop();
        continue;
      }
      const next = this.derive(step.at, byte);
      if (next.nullable || this.#hasMatch.get(next) === true) return settle(true);
      if (!next.mayBeEmpty) {
        if (next !== this.none) return settle(true);
        continue;
      }
      if (seen.has(next) || this.#hasMatch.get(next) === false) continue;
      this.#countSearched();
      seen.add(next);
      way.push({ at: next, left: [...this.#startsOf(next)] });
    }
    return settle(false);
  }

  /**
   * True if at least `count` texts match.
   *
   * @throws TooComplex if the searches took too long
   */
  hasTexts(regex: Regex, count: number): boolean {
    let left = count;
    const open = new Set<Regex>();
    const search = (at: Regex): boolean => {
      // A loop on the way to a match has no end of texts.
      if (open.has(at) || (at.nullable && --left <= 0)) return true;
      this.#countSearched();
      open.add(at);
      this.budget.spend(32);
      for (let byte = 0; byte < 256; byte++) {
        const next = this.derive(at, byte);
        if (next !== this.none && this.hasMatch(next) && search(next)) return true;
      }
      open.delete(at);
      return false;
    };
    return count <= 0 || (this.hasMatch(regex) && search(regex));
  }

  #countSearched(): void {
    if (++this.#searched > MAX_SEARCH) throw new TooComplex();
  }

  /** True if the expression matches the bytes. */
  matches(regex: Regex, bytes: Uint8Array): boolean {
    let at = regex;
    this.budget.spend(bytes.length);
    for (const byte of bytes) at = this.derive(at, byte);
    return at.nullable;
  }

  /** One byte of each class that the derivatives tell apart. */
  #startsOf(regex: Regex): readonly number[] {
    let starts = this.#firstBytes.get(regex);
    if (starts !== undefined) return starts;
    const sets = new Set<ByteSet>();
    this.budget.spend(collectStarts(regex, sets));
    let classes: ByteSet[] = [ALL_BYTES];
    for (const set of sets) {
      this.budget.spend(classes.length);
      classes = classes.flatMap((one) => {
        const inside = one.map((word, i) => word & set[i]!);
        const outside = one.map((word, i) => word & ~set[i]!);
        return [inside, outside].filter((part) => part.some((word) => word !== 0));
      });
    }
    starts = classes.map(firstOf).sort((a, b) => a - b);
    this.#firstBytes.set(regex, starts);
    this.budget.hold(8 * starts.length);
    return starts;
  }

  #make(key: string, form: Form, nullable: boolean, mayBeEmpty: boolean): Regex {
    // The key is as long as the expression has members.
    this.budget.spend(1 + (key.length >> 3));
    let made = this.#known.get(key);
    if (made === undefined) {
      this.budget.hold(EXPRESSION_BYTES + 3 * key.length);
      made = { id: this.#known.size, nullable, mayBeEmpty, derived: undefined, form };
      this.#known.set(key, made);
    }
    return made;
  }
}

const ZERO = 0x30;
const NINE = 0x39;
const POINT = 0x2e;
const DIGITS_AND_POINT: readonly ByteSet[] = Array.from({ length: 11 }, (_, i) => {
  const byte = i === 10 ? POINT : ZERO + i;
  return Array.from({ length: 8 }, (_, word) => (word === byte >> 5 ? 1 << (byte & 31) : 0));
});

const ALL_BYTES: ByteSet = new Array(8).fill(-1);

/** The smallest byte of a set that is not empty. */
function firstOf(set: ByteSet): number {
  const word = set.findIndex((one) => one !== 0);
  return 32 * word + 31 - Math.clz32(set[word]! & -set[word]!);
}

function has(set: ByteSet, byte: number): boolean {
  return ((set[byte >> 5]! >>> (byte & 31)) & 1) === 1;
}

function ids(members: readonly Regex[]): string {
  return members.map(({ id }) => id).join();
}

/** Adds the sets of bytes that a match may begin with. Returns the number of expressions that were looked at. */
function collectStarts(regex: Regex, sets: Set<ByteSet>): number {
  const seen = new Set<Regex>([regex]);
  for (const { form } of seen) {
    switch (form.kind) {
      case "byte":
        sets.add(form.set);
        break;
      case "then":
        seen.add(form.first);
        if (form.first.nullable) seen.add(form.rest);
        break;
      case "any":
      case "all":
        for (const one of form.members) seen.add(one);
        break;
      case "not":
      case "repeat":
        seen.add(form.of);
        break;
      case "multiple":
        for (const set of DIGITS_AND_POINT) sets.add(set);
    }
  }
  return seen.size;
}
