import { bytesOfPiece, bytesOfSpelling, type TokenSpelling } from "../token-spelling.js";
import { type Regex, UNBOUNDED } from "./byte-regex.js";
import type { GrammarMachine, GrammarState } from "./grammar.js";

/** Tokens with more characters are not counted as plain, so that a string that may go on this long takes all of them. */
const MAX_PLAIN_CHARACTERS = 64;
/** Number of masks of a grammar that are kept. One of 128,000 tokens takes 16 kB. */
const MAX_MASKS = 256;
/** Nodes of the tree whose visit is one step. */
const NODES_PER_STEP = 16;

/** Tokens in the order of their bytes, as a tree whose nodes stand in the order in which a walk meets them. */
class TokenTree {
  /** Byte of each node. */
  readonly #bytes: Uint8Array;
  /** Number of bytes before the one of the node. */
  readonly #depths: Uint16Array;
  /** The node after the last one below. */
  readonly #ends: Int32Array;
  /** Position in {@link #tokens} of the node's tokens; those of node n end where those of n + 1 begin. */
  readonly #first: Int32Array;
  readonly #tokens: Int32Array;
  /** Bytes of the longest token. */
  readonly maxDepth: number;

  constructor(tokens: readonly (readonly [id: number, bytes: Uint8Array])[]) {
    const sorted = [...tokens].sort(([, a], [, b]) => compareBytes(a, b));
    const bytes: number[] = [];
    const depths: number[] = [];
    const ends: number[] = [];
    const first: number[] = [];
    const ids: number[] = [];
    const open: number[] = [];
    let before: Uint8Array = new Uint8Array(0);
    const close = (depth: number) => {
      while (open.length > depth) ends[open.pop()!] = bytes.length;
    };
    for (const [id, token] of sorted) {
      let common = 0;
      while (common < before.length && common < token.length && before[common] === token[common]) common++;
      close(common);
      for (let depth = common; depth < token.length; depth++) {
        open.push(bytes.length);
        bytes.push(token[depth]!);
        depths.push(depth);
        first.push(ids.length);
      }
      ids.push(id);
      before = token;
    }
    close(0);
    this.#bytes = Uint8Array.from(bytes);
    this.#depths = Uint16Array.from(depths);
    this.#ends = Int32Array.from(ends);
    this.#first = Int32Array.from([...first, ids.length]);
    this.#tokens = Int32Array.from(ids);
    this.maxDepth = depths.reduce((max, depth) => Math.max(max, depth), 0) + 1;
  }

  /** Sets the bits of the tokens that a state allows. */
  mark(machine: GrammarMachine, start: GrammarState, mask: Int32Array): void {
    // Numbers of states only, because a walk may pass 100,000 nodes.
    const states = new Int32Array(this.maxDepth + 1);
    states[0] = machine.current(start).id;
    const [bytes, depths, ends, first] = [this.#bytes, this.#depths, this.#ends, this.#first];
    const tokens = this.#tokens;
    const { budget } = machine.regexes;
    let visited = 0;
    let known = machine.next;
    for (let node = 0; node < bytes.length; ) {
      const depth = depths[node]!;
      const state = states[depth]!;
      let next = known[256 * state + bytes[node]!]!;
      if (next === 0) {
        next = machine.find(state, bytes[node]!);
        known = machine.next;
      }
      if (next < 0) {
        if (++visited % NODES_PER_STEP === 0) budget.spend(1);
        node = ends[node]!;
        continue;
      }
      states[depth + 1] = next - 1;
      if (++visited % NODES_PER_STEP === 0) budget.spend(1);
      const last = first[node + 1]!;
      for (let i = first[node]!; i < last; i++) {
        const id = tokens[i]!;
        mask[id >> 5]! |= 1 << (id & 31);
      }
      node++;
    }
  }
}

/** The tokens of a model by their bytes. */
export class TokenBytes {
  /** Bytes of each token, empty for a token that no grammar allows. */
  readonly bytes: readonly Uint8Array[];
  /** Tokens of whole characters that a JSON string may have as they are. */
  readonly #plain: TokenTree;
  readonly #others: TokenTree;
  /** Plain tokens of at most 1, 2, ... characters. */
  readonly #plainMasks: readonly Int32Array[];

  /** @param size width of the logits */
  constructor(
    tokens: readonly string[],
    spelling: TokenSpelling,
    readonly size: number,
  ) {
    const none = new Uint8Array(0);
    const spelled: Record<TokenSpelling, (token: string) => Uint8Array> = {
      byte_level: (token) => bytesOfSpelling(token) ?? none,
      byte_fallback: (token) => bytesOfPiece(token, true),
      raw: (token) => new TextEncoder().encode(token),
    };
    this.bytes = tokens.map(spelled[spelling]);
    const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
    const plain: [number, Uint8Array][] = [];
    const others: [number, Uint8Array][] = [];
    const byLength: number[][] = Array.from({ length: MAX_PLAIN_CHARACTERS }, () => []);
    for (const [id, bytes] of this.bytes.entries()) {
      if (bytes.length === 0) continue;
      const length = plainLength(bytes, decoder);
      if (length === undefined) others.push([id, bytes]);
      else {
        plain.push([id, bytes]);
        byLength[length - 1]!.push(id);
      }
    }
    const upTo = this.newMask();
    this.#plainMasks = byLength.map((ids) => {
      for (const id of ids) upTo[id >> 5]! |= 1 << (id & 31);
      return upTo.slice();
    });
    this.#plain = new TokenTree(plain);
    this.#others = new TokenTree(others);
  }

  /** Bytes after which it makes no difference to the next token whether an expression ends. */
  get reach(): number {
    return Math.max(this.#plain.maxDepth, this.#others.maxDepth, MAX_PLAIN_CHARACTERS);
  }

  newMask(): Int32Array {
    return new Int32Array((this.size + 31) >> 5);
  }

  /** Marks the tokens that may follow in a state, in an empty mask. */
  mark(machine: GrammarMachine, state: GrammarState, plainChars: ReadonlySet<Regex>, mask: Int32Array): void {
    const { stacks } = state;
    let taken = 0;
    for (const { part } of stacks) taken = Math.max(taken, plainTaken(part!.regex!, plainChars));
    // Plain tokens that are longer than a string may still be, may go on with another stack.
    if (taken < MAX_PLAIN_CHARACTERS && (taken === 0 || stacks.length > 1))
      this.#plain.mark(machine, state, mask);
    else {
      mask.set(this.#plainMasks[Math.min(taken, MAX_PLAIN_CHARACTERS) - 1]!);
    }
    this.#others.mark(machine, state, mask);
  }
}

/** A grammar with the masks of its states for one vocabulary. */
export class TokenGrammar {
  readonly #masks = new Map<GrammarState, Int32Array>();

  constructor(
    readonly machine: GrammarMachine,
    readonly tokens: TokenBytes,
    readonly endTokens: readonly number[],
    readonly plainChars: ReadonlySet<Regex>,
  ) {}

  /** The tokens that may follow: bit `id & 31` of word `id >> 5`. The array must not be changed. */
  mask(from: GrammarState): Int32Array {
    this.machine.forget();
    const state = this.machine.endless(this.machine.current(from), this.tokens.reach);
    let mask = this.#masks.get(state);
    if (mask !== undefined) return mask;
    this.machine.regexes.beginSearches();
    mask = this.tokens.newMask();
    this.tokens.mark(this.machine, state, this.plainChars, mask);
    if (state.mayEnd) for (const id of this.endTokens) mask[id >> 5]! |= 1 << (id & 31);
    const { budget } = this.machine.regexes;
    if (this.#masks.size >= MAX_MASKS) {
      this.#masks.delete(this.#masks.keys().next().value!);
      budget.hold(-mask.byteLength);
    }
    budget.hold(mask.byteLength);
    this.#masks.set(state, mask);
    return mask;
  }

  /** The state after a token of a text; undefined if it is not allowed. */
  after(from: GrammarState, token: number, scalars: JsonScalars): GrammarState | undefined {
    const bytes = this.tokens.bytes[token];
    if (bytes === undefined || bytes.length === 0) return undefined;
    const { machine } = this;
    let state: GrammarState | undefined = from;
    for (const byte of bytes) {
      const scalar = scalars.read(byte);
      // A first look tells whether the state depends on the scalar.
      const next: GrammarState | undefined = machine.step(state, byte);
      state = machine.dependsOnScalars ? machine.stepWith(state, byte, scalar()) : next;
      if (state === undefined) return undefined;
    }
    return state;
  }
}

/** Finds the scalar of JSON that a text ends in, byte by byte. */
export class JsonScalars {
  #bytes: number[] = [];
  #inString = false;
  #isEscaped = false;

  /** Returns a function that forgets the bytes which were taken since. */
  mark(): () => void {
    const [bytes, { length }, inString, isEscaped] = [
      this.#bytes,
      this.#bytes,
      this.#inString,
      this.#isEscaped,
    ];
    return () => {
      bytes.length = length;
      [this.#bytes, this.#inString, this.#isEscaped] = [bytes, inString, isEscaped];
    };
  }

  /** Takes a byte. The result gives the text of the scalar so far. */
  read(byte: number): () => string {
    if (this.#inString) {
      this.#bytes.push(byte);
      if (this.#isEscaped) this.#isEscaped = false;
      else if (byte === BACKSLASH) this.#isEscaped = true;
      else if (byte === QUOTE) this.#inString = false;
    } else if (byte === QUOTE) {
      this.#bytes = [byte];
      this.#inString = true;
    } else if (STRUCTURE.has(byte)) this.#bytes = [];
    else this.#bytes.push(byte);
    return () => new TextDecoder().decode(Uint8Array.from(this.#bytes));
  }
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
/** White space and the characters between values. */
const STRUCTURE = new Set(Array.from(" \t\n\r,:[]{}", (char) => char.charCodeAt(0)));

/** Largest number of characters of a plain token that may follow, whichever they are; 0 if that is not certain. */
function plainTaken({ form: whole }: Regex, plainChars: ReadonlySet<Regex>): number {
  const form = whole.kind === "then" ? whole.first.form : whole;
  if (form.kind === "repeat") return plainChars.has(form.of) ? form.max : 0;
  if (form.kind !== "all") return 0;
  // A string that goes on for long is none of a finite number of others.
  const [first = 0, ...others] = form.members
    .map((one) => plainTaken(one, plainChars))
    .filter((taken) => taken > 0);
  const rest = form.members.filter((one) => plainTaken(one, plainChars) === 0);
  const isFree = first === UNBOUNDED && others.length === 0;
  return isFree && rest.every(({ form: own }) => own.kind === "not" && hasFewTexts(own.of)) ? UNBOUNDED : 0;
}

const finite = new WeakMap<Regex, boolean>();

/** True if the expression matches a finite number of texts. */
function hasFewTexts(regex: Regex): boolean {
  let found = finite.get(regex);
  if (found === undefined) {
    const { form } = regex;
    if (form.kind === "then") found = hasFewTexts(form.first) && hasFewTexts(form.rest);
    else if (form.kind === "any") found = form.members.every(hasFewTexts);
    else if (form.kind === "repeat") found = form.max < MAX_PLAIN_CHARACTERS && hasFewTexts(form.of);
    else found = form.kind === "byte" || form.kind === "none" || form.kind === "empty";
    finite.set(regex, found);
  }
  return found;
}

/** Number of characters of a plain token; undefined for another one. */
function plainLength(bytes: Uint8Array, decoder: InstanceType<typeof TextDecoder>): number | undefined {
  for (const byte of bytes) if (byte < 0x20 || byte === QUOTE || byte === BACKSLASH) return undefined;
  try {
    const { length } = [...decoder.decode(bytes)];
    return length <= MAX_PLAIN_CHARACTERS ? length : undefined;
  } catch {
    return undefined;
  }
}

function compareBytes(a: Uint8Array, b: Uint8Array): number {
  const length = Math.min(a.length, b.length);
  for (let i = 0; i < length; i++) if (a[i] !== b[i]) return a[i]! - b[i]!;
  return a.length - b.length;
}
