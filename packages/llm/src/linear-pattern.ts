import { type AST, RegExpParser } from "@eslint-community/regexpp";

/** Instructions of a program: those of longer patterns are refused. */
const MOST_INSTRUCTIONS = 4_096;

/** Steps for each character of a text. Patterns of tokenizers take about ten. */
const STEPS_OF_CHARACTER = 256;
const OWN_STEPS = 65_536;

/** Steps for a text on which the pattern is tried without its memory. */
const STEPS_OF_TRIAL = 100_000;

type Instruction =
  | { readonly kind: "set"; readonly has: (code: number) => boolean }
  /** Goes on at `first`, and at `second` if that fails. */
  | { readonly kind: "split"; first: number; second: number; readonly number: number }
  | { readonly kind: "jump"; to: number }
  /** Goes on if a program matches here, or does not. */
  | { readonly kind: "look"; readonly program: Program; readonly negate: boolean; readonly back: boolean }
  | { readonly kind: "edge"; readonly end: boolean }
  | { readonly kind: "match" };

interface Program {
  readonly code: readonly Instruction[];
  readonly splits: number;
}

/** The end of a search that takes more steps than the length of its text allows. */
export class PatternFault extends Error {}

/**
 * A regular expression of a file, which finds what `RegExp` finds with the flags `g` and `u`, in linear time: it tries no
 * branch twice at one place. JavaScript's own expressions may take exponential time, and nothing stops them. The methods
 * of strings take it like a `RegExp`. A text that replaces matches is taken as it is.
 */
export class LinearPattern {
  readonly flags = "gu";
  readonly #program: Program;
  /** Marks of the branches that were tried at each place from `#from` on. */
  #tried = new Uint8Array(1024);
  #from = 0;
  #furthest = 0;
  #steps = 0;
  /** True to search as `RegExp` does, which fails for texts on which that would take long. */
  isTrial = false;

  /** @throws SyntaxError for back references, and for patterns that are too long */
  constructor(source: string) {
    const pattern = new RegExpParser().parsePattern(source, 0, source.length, { unicode: true });
    this.#program = compile(pattern.alternatives, false);
  }

  [Symbol.match](text: string): string[] | null {
    const found = Array.from(this.#matches(text), ([from, to]) => text.slice(from, to));
    return found.length === 0 ? null : found;
  }

  *[Symbol.matchAll](text: string): Generator<{ readonly 0: string; readonly index: number }> {
    for (const [from, to] of this.#matches(text)) yield { 0: text.slice(from, to), index: from };
  }

  [Symbol.split](text: string): string[] {
    if (text === "") return this[Symbol.match](text) === null ? [""] : [];
    const parts: string[] = [];
    let end = 0;
    for (const [from, to] of this.#matches(text)) {
      if (from === to && (from === end || from === text.length)) continue;
      parts.push(text.slice(end, from));
      end = to;
    }
    parts.push(text.slice(end));
    return parts;
  }

  [Symbol.replace](text: string, by: string): string {
    let replaced = "";
    let end = 0;
    for (const [from, to] of this.#matches(text)) {
      replaced += text.slice(end, from) + by;
      end = to;
    }
    return replaced + text.slice(end);
  }

  *#matches(text: string): Generator<readonly [from: number, to: number]> {
    this.#steps = this.isTrial ? STEPS_OF_TRIAL : OWN_STEPS + STEPS_OF_CHARACTER * text.length;
    const isNew = (split: number, at: number) => this.isTrial || this.#isNew(split, at);
    for (let at = 0; at <= text.length; ) {
      this.#forget(at);
      let to = -1;
      let from = at;
      for (; from <= text.length; from += lengthAt(text, from)) {
        to = this.#run(this.#program, text, from, false, isNew);
        if (to >= 0) break;
      }
      if (to < 0) return;
      yield [from, to];
      at = to > from ? to : to + lengthAt(text, to);
    }
  }

  #forget(from: number): void {
    this.#tried.fill(0, 0, (this.#furthest - this.#from + 1) * this.#program.splits);
    this.#from = from;
    this.#furthest = from;
  }

  /** True if a branch was not tried at a place, which is marked. */
  #isNew(split: number, at: number): boolean {
    const { splits } = this.#program;
    const place = (at - this.#from) * splits + split;
    if (at > this.#furthest) this.#furthest = at;
    if (place >= this.#tried.length) {
      const longer = new Uint8Array(2 * (place + splits));
      longer.set(this.#tried);
      this.#tried = longer;
    }
    if (this.#tried[place] === 1) return false;
    this.#tried[place] = 1;
    return true;
  }

  /** @returns the end of the match that begins at a place; -1 if there is none */
  #run(
    { code }: Program,
    text: string,
    start: number,
    back: boolean,
    isNew: (split: number, at: number) => boolean,
  ): number {
    /** Branches to try later, with the place of each. */
    const later: number[] = [0, start];
    while (later.length > 0) {
      let at = later.pop()!;
      let next = later.pop()!;
      for (;;) {
        if (--this.#steps < 0)
          throw new PatternFault(`a text of ${text.length} characters takes too many steps`);
        const one = code[next]!;
        if (one.kind === "match") return at;
        if (one.kind === "jump") {
          next = one.to;
          continue;
        }
        if (one.kind === "split") {
          if (!isNew(one.number, at)) break;
          later.push(one.second, at);
          next = one.first;
          continue;
        }
        if (one.kind === "set") {
          const from = back ? at - lengthBefore(text, at) : at;
          if (from < 0 || from >= text.length || (back && at === 0)) break;
          const code = text.codePointAt(from)!;
          if (!one.has(code)) break;
          at = back ? from : at + (code > 0xffff ? 2 : 1);
        } else if (one.kind === "edge") {
          if (at !== (one.end ? text.length : 0)) break;
        } else if (this.#looks(one, text, at) === one.negate) break;
        next++;
      }
    }
    return -1;
  }

  #looks({ program, back }: Extract<Instruction, { kind: "look" }>, text: string, at: number): boolean {
    const tried = new Set<number>();
    const isNew = (split: number, place: number) => {
      const mark = place * program.splits + split;
      return !tried.has(mark) && tried.add(mark) !== undefined;
    };
    return this.#run(program, text, at, back, isNew) >= 0;
  }
}

function lengthAt(text: string, at: number): number {
  return (text.codePointAt(at) ?? 0) > 0xffff ? 2 : 1;
}

function lengthBefore(text: string, at: number): number {
  return at >= 2 && text.codePointAt(at - 2)! > 0xffff ? 2 : 1;
}

function compile(alternatives: readonly AST.Alternative[], back: boolean): Program {
  const code: Instruction[] = [];
  let splits = 0;
  const add = (one: Instruction): number => {
    if (code.length >= MOST_INSTRUCTIONS) throw new SyntaxError("a pattern that is too long");
    return code.push(one) - 1;
  };
  const split = () => {
    const at = add({ kind: "split", first: -1, second: -1, number: splits++ });
    return code[at] as Extract<Instruction, { kind: "split" }>;
  };
  /** The branch of a quantifier: into its element, or past it. */
  const branch = (greedy: boolean, loops: boolean, body: () => void) => {
    const begin = code.length;
    const one = split();
    const into = code.length;
    body();
    if (loops) add({ kind: "jump", to: begin });
    const out = code.length;
    one.first = greedy ? into : out;
    one.second = greedy ? out : into;
  };
  const addAll = (all: readonly AST.Alternative[]): void => {
    const ends: Extract<Instruction, { kind: "jump" }>[] = [];
    for (const [i, { elements }] of all.entries()) {
      const one = i < all.length - 1 ? split() : undefined;
      if (one !== undefined) one.first = code.length;
      for (const element of back ? elements.toReversed() : elements) addElement(element);
      if (one === undefined) continue;
      ends.push(code[add({ kind: "jump", to: -1 })] as (typeof ends)[number]);
      one.second = code.length;
    }
    for (const end of ends) end.to = code.length;
  };
  const addElement = (element: AST.Element | AST.QuantifiableElement): void => {
    switch (element.type) {
      case "Group":
      case "CapturingGroup":
        addAll(element.alternatives);
        return;
      case "Quantifier": {
        const { min, max, greedy, element: body } = element;
        if (min > MOST_INSTRUCTIONS) throw new SyntaxError("a pattern that is too long");
        for (let i = 0; i < min; i++) addElement(body);
        if (max === Number.POSITIVE_INFINITY) {
          branch(greedy, true, () => addElement(body));
          return;
        }
        const rest = (left: number): void => {
          if (left === 0) return;
          branch(greedy, false, () => {
            addElement(body);
            rest(left - 1);
          });
        };
        rest(max - min);
        return;
      }
      case "Assertion": {
        if (element.kind === "lookahead" || element.kind === "lookbehind") {
          const behind = element.kind === "lookbehind";
          const program = compile(element.alternatives, behind);
          add({ kind: "look", program, negate: element.negate, back: behind });
          return;
        }
        if (element.kind === "word") break;
        add({ kind: "edge", end: element.kind === "end" });
        return;
      }
      case "Character": {
        const { value } = element;
        add({ kind: "set", has: (one) => one === value });
        return;
      }
      case "CharacterClass":
      case "CharacterSet":
        add({ kind: "set", has: setOf(element.raw) });
        return;
    }
    throw new SyntaxError(`a pattern without ${element.raw}`);
  };
  addAll(alternatives);
  add({ kind: "match" });
  return { code, splits };
}

/** Characters of a class, which are asked for once each. */
function setOf(source: string): (code: number) => boolean {
  const one = new RegExp(`^(?:${source})$`, "u");
  const pages: (Uint8Array | undefined)[] = [];
  return (code) => {
    const page = pages[code >> 8] ?? new Uint8Array(256);
    pages[code >> 8] = page;
    const known = page[code & 255]!;
    if (known !== 0) return known === 1;
    const has = one.test(String.fromCodePoint(code));
    page[code & 255] = has ? 1 : 2;
    return has;
  };
}
