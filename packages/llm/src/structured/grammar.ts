import type { Regex, Regexes } from "./byte-regex.js";

/**
 * A part of a grammar: an expression, or a part that stands for one of several sequences of parts. Those are asked for
 * once, when a text first reaches the part, so a grammar may be endless.
 */
export interface Part {
  readonly regex?: Regex | undefined;
  readonly choices?: (() => readonly (readonly Part[])[]) | undefined;
  /**
   * Choices that depend on the scalar of JSON just before. A mask asks for those of any scalar, without a text; a text
   * that was written asks with it.
   */
  readonly choicesAfter?: ((scalar: string | undefined) => readonly (readonly Part[])[]) | undefined;
}

/** Parts that must follow, the next one first. Equal lists are the same object. */
interface Stack {
  readonly id: number;
  readonly part: Part | undefined;
  readonly rest: Stack | undefined;
}

/** Continuations of a text: one of several stacks, each with an expression first. */
export interface GrammarState {
  readonly id: number;
  /** Number of times that states had been forgotten when this one was made. */
  readonly generation: number;
  /** True if the text may end. */
  readonly mayEnd: boolean;
  readonly stacks: readonly Stack[];
}

/** Largest number of stacks of a state. */
const MAX_STACKS = 60_000;
/** Bytes of states after which all are forgotten but those in use. */
const MAX_STATE_BYTES = 8 * 2 ** 20;
/** Bytes of a state without its stacks, and of a stack. */
const STATE_BYTES = 1_400;
const STACK_BYTES = 160;
/** Number of states for which there is space at first. */
const FIRST_STATES = 64;

/** A grammar that is read in too many ways at once, or refers to itself without taking a byte. */
export class UnheldGrammar extends Error {}

/**
 * Walks texts byte by byte through a grammar, along all ways to read them at once. Each state is made when a text first
 * reaches it and is then found again, so a text mostly costs one look into a table for each byte.
 */
export class GrammarMachine {
  #states = new Map<string, GrammarState>();
  #byId: GrammarState[] = [];
  #endless = new Map<GrammarState, GrammarState>();
  #next = new Int32Array(256 * FIRST_STATES);
  readonly #bottom: Stack = { id: 0, part: undefined, rest: undefined };
  #stacks = new Map<Stack, Map<Part, Stack>>();
  #stackCount = 1;
  #generation = 0;
  /** Bytes of the states and stacks. */
  #held = 0;
  /** The scalar that a step ends with. */
  #scalar: string | undefined;
  #dependsOnScalar = false;
  readonly #regexParts = new Map<Regex, Part>();
  readonly #choices = new Map<Part, readonly (readonly Part[])[]>();
  readonly start: GrammarState;

  constructor(
    readonly regexes: Regexes,
    root: Part,
  ) {
    const stacks = new Set<Stack>();
    const mayEnd = this.#settle(this.#push(root, this.#bottom), stacks, new Set());
    this.start = this.#state(stacks, mayEnd);
  }

  /** Number of states that are held. */
  get size(): number {
    return this.#byId.length;
  }

  /**
   * The states after each byte, 256 for each state: 0 if it is not known, -1 if the byte is not allowed, else the number
   * of the state plus 1. Another array takes its place when states are made.
   */
  get next(): Int32Array {
    return this.#next;
  }

  /** True if states depend on scalars, so that {@link stepWith} must be used for the bytes of a text. */
  get dependsOnScalars(): boolean {
    return this.#dependsOnScalar;
  }

  /** The state after a byte; undefined if the grammar does not allow it. */
  step(from: GrammarState, byte: number): GrammarState | undefined {
    const { id } = this.current(from);
    const next = this.#next[256 * id + byte]! || this.find(id, byte);
    return next > 0 ? this.#byId[next - 1] : undefined;
  }

  /** Finds what {@link next} does not know yet about a state and a byte. */
  find(id: number, byte: number): number {
    const after = this.#after(this.#byId[id]!, byte);
    const next = after === undefined ? -1 : after.id + 1;
    this.#next[256 * id + byte] = next;
    return next;
  }

  /**
   * The state after a byte of a text that was written, where it may depend on the JSON text of the scalar that the byte
   * belongs to.
   */
  stepWith(from: GrammarState, byte: number, scalar: string): GrammarState | undefined {
    this.#scalar = scalar;
    try {
      return this.#after(this.current(from), byte);
    } finally {
      this.#scalar = undefined;
    }
  }

  #after(state: GrammarState, byte: number): GrammarState | undefined {
    const { regexes } = this;
    const stacks = new Set<Stack>();
    regexes.budget.spend(1 + state.stacks.length);
    let mayEnd = false;
    let seen: Set<Stack> | undefined;
    for (const { part, rest } of state.stacks) {
      const derived = regexes.derive(part!.regex!, byte);
      if (derived === regexes.none || (derived.mayBeEmpty && !regexes.hasMatch(derived))) continue;
      seen ??= new Set();
      const next = derived === regexes.empty ? rest! : this.#push(this.#regexPart(derived), rest!);
      if (this.#settle(next, stacks, seen)) mayEnd = true;
    }
    return stacks.size === 0 && !mayEnd ? undefined : this.#state(stacks, mayEnd);
  }

  /** Forgets the states if there are many. Those that were given out may still be stepped. */
  forget(): void {
    if (this.#held < MAX_STATE_BYTES) return;
    this.#hold(-this.#held);
    this.#generation++;
    this.#states = new Map();
    this.#endless = new Map();
    this.#stacks = new Map();
    this.#byId = [];
    this.#next = new Int32Array(256 * FIRST_STATES);
  }

  /** The state itself, or the one that took its place after {@link forget}. */
  current(state: GrammarState): GrammarState {
    if (state.generation === this.#generation) return state;
    return this.#state(new Set(state.stacks), state.mayEnd);
  }

  /**
   * A state that allows the same tokens of at most `length` bytes. The states of a long string share one, whose mask
   * is then made once.
   */
  endless(state: GrammarState, length: number): GrammarState {
    let endless = this.#endless.get(state);
    if (endless === undefined) {
      const known = new Map<Regex, Regex>();
      const stacks = state.stacks.map((stack) => {
        const regex = this.regexes.endless(stack.part!.regex!, length, known);
        return regex === stack.part!.regex ? stack : this.#push(this.#regexPart(regex), stack.rest!);
      });
      endless = this.#state(new Set(stacks), state.mayEnd);
      this.#endless.set(state, endless);
    }
    return endless;
  }

  /** Adds the stacks with an expression on top that a stack stands for. Returns true if the text may end. */
  #settle(stack: Stack, found: Set<Stack>, seen: Set<Stack>): boolean {
    if (seen.has(stack)) return false;
    seen.add(stack);
    this.regexes.budget.spend(1);
    const { part, rest } = stack;
    if (part === undefined) return true;
    if (part.regex !== undefined) {
      if (part.regex === this.regexes.none) return false;
      if (part.regex !== this.regexes.empty) {
        found.add(stack);
        if (found.size > MAX_STACKS) {
          throw new UnheldGrammar(`a text of it can be read in more than ${MAX_STACKS} ways`);
        }
      }
      return part.regex.nullable && this.#settle(rest!, found, seen);
    }
    let mayEnd = false;
    for (const choice of this.#choicesOf(part)) {
      let next = rest!;
      for (let i = choice.length - 1; i >= 0; i--) next = this.#push(choice[i]!, next);
      if (this.#settle(next, found, seen)) mayEnd = true;
    }
    return mayEnd;
  }

  #choicesOf(part: Part): readonly (readonly Part[])[] {
    if (part.choicesAfter !== undefined) {
      this.#dependsOnScalar = true;
      if (this.#scalar !== undefined) return part.choicesAfter(this.#scalar);
    }
    let choices = this.#choices.get(part);
    if (choices === undefined) {
      choices = part.choices?.() ?? part.choicesAfter!(undefined);
      this.#choices.set(part, choices);
      for (const { length } of choices) this.regexes.budget.hold(STACK_BYTES + 8 * length);
    }
    return choices;
  }

  #regexPart(regex: Regex): Part {
    let part = this.#regexParts.get(regex);
    if (part === undefined) {
      part = { regex };
      this.#regexParts.set(regex, part);
    }
    return part;
  }

  #hold(bytes: number): void {
    this.#held += bytes;
    this.regexes.budget.hold(bytes);
  }

  #push(part: Part, rest: Stack): Stack {
    this.regexes.budget.spend(1);
    let above = this.#stacks.get(rest);
    if (above === undefined) {
      above = new Map();
      this.#stacks.set(rest, above);
    }
    let stack = above.get(part);
    if (stack === undefined) {
      this.#hold(STACK_BYTES);
      stack = { id: this.#stackCount++, part, rest };
      above.set(part, stack);
    }
    return stack;
  }

  #state(found: Set<Stack>, mayEnd: boolean): GrammarState {
    this.regexes.budget.spend(1 + found.size);
    const stacks = [...found].sort((a, b) => a.id - b.id);
    const key = `${mayEnd}${stacks.map(({ id }) => id).join()}`;
    let state = this.#states.get(key);
    if (state === undefined) {
      this.#hold(STATE_BYTES + 24 * stacks.length);
      const id = this.#byId.length;
      if (256 * id === this.#next.length) {
        const larger = new Int32Array(2 * this.#next.length);
        larger.set(this.#next);
        this.#next = larger;
      }
      state = { id, generation: this.#generation, mayEnd, stacks };
      this.#byId.push(state);
      this.#states.set(key, state);
    }
    return state;
  }
}
