import { type AST, RegExpParser } from "@eslint-community/regexpp";
import { type Regex, type Regexes, UNBOUNDED } from "./byte-regex.js";
import type { GrammarBudget } from "./grammar-budget.js";
import { type CodePoints, type Letters, otherCodePoints } from "./json-text.js";

/** Construct of a pattern that an expression cannot hold. The message names it. */
export class UnheldPattern extends Error {}

/**
 * The texts that a pattern of ECMAScript matches, as an expression. Look-ahead becomes an intersection; what looks back
 * (`(?<=`, `\1`, `\b`) is refused.
 *
 * @param isWhole true if the pattern must match the whole text; otherwise a part of the text is enough, as in JSON schemas
 * @throws UnheldPattern for a pattern that is not one of ECMAScript or that looks back
 */
export function patternRegex(pattern: string, regexes: Regexes, letters: Letters, isWhole: boolean): Regex {
  const reader = new PatternReader(regexes, letters);
  // The tree of the parser has some objects for each character.
  regexes.budget.spend(PARSE_STEPS * pattern.length);
  const { alternatives } = parse(pattern);
  if (isWhole) return reader.among(alternatives, true, () => regexes.empty);
  const anything = reader.anything;
  const rest = () => anything;
  const atStart = reader.among(alternatives, true, rest);
  const later = reader.among(alternatives, false, rest);
  return regexes.any(atStart, regexes.sequence(reader.anyChar, anything, later));
}

/** Steps for each character of a pattern that is parsed. */
const PARSE_STEPS = 4;
/** Code points that are looked up in a step. */
const CODES_PER_STEP = 8;

function parse(pattern: string): AST.Pattern {
  const parser = new RegExpParser({ ecmaVersion: 2025 });
  try {
    return parser.parsePattern(pattern, 0, pattern.length, { unicode: true, unicodeSets: false });
  } catch {
    // Escapes such as \- and \_ are only known without the flag u.
    try {
      return parser.parsePattern(pattern, 0, pattern.length, { unicode: false, unicodeSets: false });
    } catch (error) {
      throw new UnheldPattern((error as Error).message);
    }
  }
}

/** Continuation of a part of a pattern, given whether the part is still at the start of the text. */
type Rest = (isStart: boolean) => Regex;

class PatternReader {
  readonly anyChar: Regex;
  readonly anything: Regex;

  constructor(
    readonly regexes: Regexes,
    readonly letters: Letters,
  ) {
    this.anyChar = letters.chars(otherCodePoints([]));
    this.anything = regexes.repeat(this.anyChar, 0, UNBOUNDED);
  }

  among(alternatives: readonly AST.Alternative[], isStart: boolean, rest: Rest): Regex {
    const once = kept(rest);
    return this.regexes.any(
      ...alternatives.map(({ elements }) => this.#sequence(elements, 0, isStart, once)),
    );
  }

  #sequence(elements: readonly AST.Element[], i: number, isStart: boolean, rest: Rest): Regex {
    const element = elements[i];
    if (element === undefined) return rest(isStart);
    return this.#element(
      element,
      isStart,
      kept((start) => this.#sequence(elements, i + 1, start, rest)),
    );
  }

  #element(element: AST.Element, isStart: boolean, rest: Rest): Regex {
    const { regexes } = this;
    switch (element.type) {
      case "Character":
      case "CharacterSet":
      case "CharacterClass":
        return regexes.sequence(this.letters.chars(codePointsOf(element, regexes.budget)), rest(false));
      case "Group":
      case "CapturingGroup":
        return this.among(element.alternatives, isStart, rest);
      case "Quantifier":
        return this.#repeated(element, isStart, rest);
      case "Assertion":
        return this.#assertion(element, isStart, rest);
      default:
        throw new UnheldPattern(`${element.raw}, which refers to an earlier part`);
    }
  }

  #assertion(assertion: AST.Assertion, isStart: boolean, rest: Rest): Regex {
    const { regexes } = this;
    switch (assertion.kind) {
      case "start":
        return isStart ? rest(true) : regexes.none;
      case "end":
        return regexes.both(rest(isStart), regexes.empty);
      case "lookahead": {
        const ahead = this.among(assertion.alternatives, isStart, () => this.anything);
        return regexes.both(rest(isStart), assertion.negate ? regexes.not(ahead) : ahead);
      }
      default:
        throw new UnheldPattern(`${assertion.raw}, which looks back`);
    }
  }

  #repeated({ element, min, max, raw }: AST.Quantifier, isStart: boolean, rest: Rest): Regex {
    const { regexes } = this;
    if (!hasAssertion(element)) {
      const one = this.#element(element, false, () => regexes.empty);
      if (!isStart) return regexes.sequence(regexes.repeat(one, min, max), rest(false));
      const some = regexes.sequence(regexes.repeat(one, Math.max(min, 1), max), rest(false));
      return min === 0 || one.nullable ? regexes.any(rest(true), some) : some;
    }
    if (max > 8) throw new UnheldPattern(`${raw}, which repeats an assertion`);
    const times = (n: number): Rest =>
      kept((start) => {
        const more = n < max ? this.#element(element, start, times(n + 1)) : regexes.none;
        return n >= min ? regexes.any(rest(start), more) : more;
      });
    return times(0)(isStart);
  }
}

/** Calls a function only once for each of the two values. */
function kept(rest: Rest): Rest {
  const results: Partial<Record<"true" | "false", Regex>> = {};
  return (isStart) => {
    const key = isStart ? "true" : "false";
    results[key] ??= rest(isStart);
    return results[key];
  };
}

function hasAssertion(element: AST.Element): boolean {
  switch (element.type) {
    case "Assertion":
      return true;
    case "Group":
    case "CapturingGroup":
      return element.alternatives.some(({ elements }) => elements.some(hasAssertion));
    case "Quantifier":
      return hasAssertion(element.element);
    default:
      return false;
  }
}

const DIGITS: CodePoints = [[0x30, 0x39]];
const WORD: CodePoints = [
  [0x30, 0x39],
  [0x41, 0x5a],
  [0x5f, 0x5f],
  [0x61, 0x7a],
];
const LINE_ENDS: CodePoints = [
  [0x0a, 0x0a],
  [0x0d, 0x0d],
  [0x2028, 0x2029],
];
const SPACE: CodePoints = [
  [0x09, 0x0d],
  [0x20, 0x20],
  [0xa0, 0xa0],
  [0x1680, 0x1680],
  [0x2000, 0x200a],
  [0x2028, 0x2029],
  [0x202f, 0x202f],
  [0x205f, 0x205f],
  [0x3000, 0x3000],
  [0xfeff, 0xfeff],
];

type ClassPart = AST.Character | AST.CharacterSet | AST.CharacterClass | AST.CharacterClassElement;

function codePointsOf(part: ClassPart, budget: GrammarBudget): CodePoints {
  switch (part.type) {
    case "Character":
      return [[part.value, part.value]];
    case "CharacterClassRange":
      return [[part.min.value, part.max.value]];
    case "CharacterClass": {
      const points = part.elements.flatMap((one) => codePointsOf(one as ClassPart, budget));
      budget.spend(points.length);
      return part.negate ? otherCodePoints(points) : points;
    }
    case "CharacterSet":
      return setPoints(part, budget);
    default:
      throw new UnheldPattern(part.raw);
  }
}

function setPoints(set: AST.CharacterSet, budget: GrammarBudget): CodePoints {
  const given = (points: CodePoints) => ("negate" in set && set.negate ? otherCodePoints(points) : points);
  switch (set.kind) {
    case "any":
      return otherCodePoints(LINE_ENDS);
    case "digit":
      return given(DIGITS);
    case "space":
      return given(SPACE);
    case "word":
      return given(WORD);
    case "property":
      return propertyPoints(set.raw, budget);
  }
}

const properties = new Map<string, CodePoints>();

/** The code points of a property such as `\p{L}`, found by asking the engine for each. Takes 30 ms once. */
function propertyPoints(raw: string, budget: GrammarBudget): CodePoints {
  const known = properties.get(raw);
  if (known !== undefined) return known;
  const one = new RegExp(raw, "u");
  const points: [number, number][] = [];
  for (let code = 0; code <= 0x10ffff; code++) {
    if (code % CODES_PER_STEP === 0) budget.spend(1);
    if (!one.test(String.fromCodePoint(code))) continue;
    const last = points.at(-1);
    if (last !== undefined && last[1] === code - 1) last[1] = code;
    else points.push([code, code]);
  }
  properties.set(raw, points);
  return points;
}
