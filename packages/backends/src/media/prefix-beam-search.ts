import { NgramModel, type NgramTable } from "./ngram-model.js";

/** The blank of CTC. */
const BLANK = 0;

const IMPOSSIBLE = Number.NEGATIVE_INFINITY;

/** Begins units that begin words. */
const WORD_START = "▁";

/** Frames between two removals of prefixes that nothing follows any more. */
const SWEEP = 64;

/** A text that the search may still end with. */
interface Prefix {
  /** Undefined for the empty text. */
  readonly parent: Prefix | undefined;
  readonly unit: number;
  /** Frame in which the last unit was first heard, since the text has been followed. */
  frame: number;
  readonly children: Map<number, Prefix>;
  /** Logarithms of the probabilities that the frames so far end with a blank, and that they do not. */
  blank: number;
  other: number;
  nextBlank: number;
  nextOther: number;
  /** Frame to which the probabilities of the next frame belong. */
  touched: number;
  /** Frame after which the text was last followed. */
  followed: number;
  /** Sum of the bonuses of the hot words in the text, and of what its complete words add. */
  readonly bonus: number;
  /** End of the text, as long as the longest hot word. */
  readonly tail: string;
  /** For a language model: the complete words, as many as it needs, and the one after them so far. */
  readonly words: readonly string[];
  readonly word: string;
  rank: number;
}

/** A text with its score: the logarithm of its probability, its bonuses, and the score of its words. */
export interface Hypothesis {
  readonly score: number;
  readonly units: readonly number[];
  /** Frames in which the units were first heard. */
  readonly frames: readonly number[];
}

export interface SearchSettings {
  readonly vocabulary: readonly string[];
  /** Number of texts that are followed. */
  readonly beam: number;
  /** The likeliest units of a frame are tried until they have this probability in sum. */
  readonly cutoffProb: number;
  /** Words, and what each occurrence adds to the score of a text. */
  readonly hotWords: ReadonlyMap<string, number>;
  /** A language model: each word of a text adds its weighted logarithm of probability, and a bonus. */
  readonly ngram?: NgramSettings | undefined;
}

export interface NgramSettings {
  readonly table: NgramTable;
  readonly weight: number;
  readonly wordBonus: number;
}

/** Logarithm of the sum of two probabilities given by their logarithms. */
function add(a: number, b: number): number {
  const [more, less] = a < b ? [b, a] : [a, b];
  return less === IMPOSSIBLE ? more : more + Math.log1p(Math.exp(less - more));
}

/**
 * Prefix beam search of CTC over the likeliest units of each frame.
 *
 * ```
 * frame:       0      1      2
 * "" ──────> ""  ──> "a" ──> "ab"      each text has two probabilities: that its last frame
 *    └─────> "a" ──> "a" ──> "a"       is a blank, and that it is the last unit
 * ```
 *
 * A language model scores a word when the next word begins, and the last word at the end of the signal. In a vocabulary
 * without units that begin with `▁`, each unit is a word.
 */
export class PrefixBeamSearch {
  readonly #settings: SearchSettings;
  readonly #hotWords: readonly (readonly [string, number])[];
  readonly #longest: number;
  readonly #ngram: NgramModel | undefined;
  /** True if each unit is a word. */
  readonly #hasWholeWords: boolean;
  #prefixes: Prefix[];
  #root: Prefix;
  #frame = 0;

  /** @param state what `save` returned, to go on from there */
  constructor(settings: SearchSettings, state?: Uint8Array) {
    this.#settings = settings;
    this.#hotWords = [...settings.hotWords].map(([word, bonus]) => [`▁${word.replaceAll(" ", "▁")}`, bonus]);
    this.#longest = Math.max(0, ...this.#hotWords.map(([word]) => word.length));
    this.#ngram = settings.ngram && new NgramModel(settings.ngram.table);
    this.#hasWholeWords = !settings.vocabulary.some((unit) => unit.startsWith(WORD_START));
    this.#root = this.#prefix(undefined, BLANK, -1);
    this.#root.blank = 0;
    this.#prefixes = [this.#root];
    if (state !== undefined && state.length > 0) this.#restore(state);
  }

  /**
   * Takes the next frames.
   *
   * @param logProbs logarithms of probabilities, `width` a frame, the largest first
   * @param ids the units that they belong to
   */
  advance(logProbs: Float32Array, ids: Int32Array, frames: number, width: number): void {
    for (let frame = 0; frame < frames; frame++) {
      this.#step(logProbs, ids, frame * width, width);
      this.#frame++;
      if (this.#frame % SWEEP === 0) this.#sweep();
    }
  }

  /**
   * The likeliest texts, best first.
   *
   * @param isComplete false if the last word may go on in the next frames
   */
  results(isComplete = true): readonly Hypothesis[] {
    const found = this.#prefixes.map((prefix) => {
      const last = isComplete ? this.#scoreOf(prefix.words, prefix.word) : 0;
      return { score: add(prefix.blank, prefix.other) + prefix.bonus + last, ...pathOf(prefix) };
    });
    // The last words may change the order.
    return this.#ngram === undefined ? found : found.sort((a, b) => b.score - a.score);
  }

  #step(logProbs: Float32Array, ids: Int32Array, start: number, width: number): void {
    const { cutoffProb, beam } = this.#settings;
    let count = 0;
    for (let seen = 0; count < width && seen < cutoffProb; count++)
      seen += Math.exp(logProbs[start + count]!);
    const following: Prefix[] = [];
    for (const prefix of this.#prefixes) {
      const { blank, other, unit: last } = prefix;
      const whole = add(blank, other);
      for (let i = start; i < start + count; i++) {
        const [logProb, unit] = [logProbs[i]!, ids[i]!];
        if (unit === BLANK) {
          this.#touch(prefix, following);
          prefix.nextBlank = add(prefix.nextBlank, whole + logProb);
          continue;
        }
        let added = whole + logProb;
        if (unit === last && prefix.parent !== undefined) {
          this.#touch(prefix, following);
          prefix.nextOther = add(prefix.nextOther, other + logProb);
          // Only a blank between them makes two of the same unit.
          added = blank + logProb;
          if (added === IMPOSSIBLE) continue;
        }
        const longer = this.#child(prefix, unit);
        this.#touch(longer, following);
        longer.nextOther = add(longer.nextOther, added);
      }
    }
    for (const prefix of following) {
      prefix.blank = prefix.nextBlank;
      prefix.other = prefix.nextOther;
      prefix.rank = add(prefix.blank, prefix.other) + prefix.bonus;
    }
    following.sort((a, b) => b.rank - a.rank);
    if (following.length > beam) following.length = beam;
    for (const prefix of following) prefix.followed = this.#frame;
    this.#prefixes = following;
  }

  #touch(prefix: Prefix, following: Prefix[]): void {
    if (prefix.touched === this.#frame) return;
    if (prefix.followed !== this.#frame - 1) prefix.frame = this.#frame;
    prefix.touched = this.#frame;
    prefix.nextBlank = IMPOSSIBLE;
    prefix.nextOther = IMPOSSIBLE;
    following.push(prefix);
  }

  #child(prefix: Prefix, unit: number): Prefix {
    const known = prefix.children.get(unit);
    if (known !== undefined) return known;
    const made = this.#prefix(prefix, unit, this.#frame);
    prefix.children.set(unit, made);
    return made;
  }

  #prefix(parent: Prefix | undefined, unit: number, frame: number): Prefix {
    let [bonus, tail] = [parent?.bonus ?? 0, ""];
    let [words, word] = [parent?.words ?? this.#ngram?.start ?? NO_WORDS, parent?.word ?? ""];
    if (this.#longest > 0 && parent !== undefined) {
      tail = (parent.tail + this.#settings.vocabulary[unit]).slice(-this.#longest);
      for (const [word, more] of this.#hotWords) if (tail.endsWith(word)) bonus += more;
    }
    if (this.#ngram !== undefined && parent !== undefined) {
      const piece = this.#settings.vocabulary[unit]!;
      const begins = this.#hasWholeWords || piece.startsWith(WORD_START);
      if (begins && word !== "") {
        bonus += this.#scoreOf(words, word);
        words = this.#ngram.after(words, word);
      }
      word = begins ? piece.replace(WORD_START, "") : word + piece;
    }
    const probabilities = {
      blank: IMPOSSIBLE,
      other: IMPOSSIBLE,
      nextBlank: IMPOSSIBLE,
      nextOther: IMPOSSIBLE,
    };
    return {
      parent,
      unit,
      frame,
      children: new Map(),
      ...probabilities,
      touched: -1,
      followed: -1,
      bonus,
      tail,
      words,
      word,
      rank: 0,
    };
  }

  /** Amount that a complete word adds to the score of a text. */
  #scoreOf(before: readonly string[], word: string): number {
    const { ngram } = this.#settings;
    if (ngram === undefined || word === "") return 0;
    return ngram.weight * this.#ngram!.score(before, word) + ngram.wordBonus;
  }

  /** Removes prefixes that are not part of a text that is followed. */
  #sweep(): void {
    const kept = new Set<Prefix>();
    for (const prefix of this.#prefixes) {
      for (let at: Prefix | undefined = prefix; at !== undefined && !kept.has(at); at = at.parent)
        kept.add(at);
    }
    for (const prefix of kept) {
      for (const [unit, child] of prefix.children) if (!kept.has(child)) prefix.children.delete(unit);
    }
  }

  /**
   * The state of the search, to go on from with the next frames:
   *
   * ```
   * [frames so far, texts, then for each: units, blank, other, unit 1, frame 1, unit 2, ...]   doubles
   * ```
   */
  save(): Uint8Array {
    const numbers = [this.#frame, this.#prefixes.length];
    for (const prefix of this.#prefixes) {
      const { units, frames } = pathOf(prefix);
      numbers.push(units.length, prefix.blank, prefix.other);
      for (const [j, unit] of units.entries()) numbers.push(unit, frames[j]!);
    }
    return new Uint8Array(Float64Array.from(numbers).buffer);
  }

  #restore(state: Uint8Array): void {
    const numbers = new Float64Array(state.slice().buffer);
    let at = 0;
    const next = () => numbers[at++]!;
    const frame = next();
    this.#prefixes = Array.from({ length: next() }, () => {
      const [units, blank, other] = [next(), next(), next()];
      let prefix = this.#root;
      for (let i = 0; i < units; i++) {
        const unit = next();
        // A new prefix was first heard in the frame that the state has.
        this.#frame = next();
        prefix = this.#child(prefix, unit);
      }
      return Object.assign(prefix, { blank, other, followed: frame - 1 });
    });
    this.#frame = frame;
  }
}

const NO_WORDS: readonly string[] = [];

/** Units of a text, and the frames in which they were first heard. */
function pathOf(prefix: Prefix): Pick<Hypothesis, "units" | "frames"> {
  const [units, frames]: [number[], number[]] = [[], []];
  for (let at = prefix; at.parent !== undefined; at = at.parent) {
    units.push(at.unit);
    frames.push(at.frame);
  }
  return { units: units.reverse(), frames: frames.reverse() };
}

/** The likeliest unit of each frame, without repetitions and blanks. */
export function greedySearch(
  logProbs: Float32Array,
  ids: Int32Array,
  count: number,
  width: number,
): Hypothesis {
  const [units, frames]: [number[], number[]] = [[], []];
  let score = 0;
  for (let frame = 0, before = BLANK; frame < count; frame++) {
    const unit = ids[frame * width]!;
    score += logProbs[frame * width]!;
    if (unit !== BLANK && unit !== before) {
      units.push(unit);
      frames.push(frame);
    }
    before = unit;
  }
  return { score, units, frames };
}
