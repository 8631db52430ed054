import { errorFor } from "@tritonjs/protocol";
import { badLine, linesOf } from "./read-units.js";

/** An n-gram model of words, as an ARPA file has it. Structured cloning keeps it. */
export interface NgramTable {
  /** Number of words of the longest n-grams. */
  readonly order: number;
  /** Natural logarithms of probabilities, by the words of the n-gram with spaces between them. */
  readonly probabilities: ReadonlyMap<string, number>;
  /** Natural logarithms of the weights with which shorter n-grams are used after these words. */
  readonly backoffs: ReadonlyMap<string, number>;
}

/** Probability of unknown words in a file without `<unk>`: 10^-100, as in KenLM. */
const UNKNOWN = -100 * Math.LN10;

/** Scores one word after another. */
export class NgramModel {
  readonly #unknown: number;

  constructor(private readonly table: NgramTable) {
    this.#unknown = table.probabilities.get("<unk>") ?? UNKNOWN;
  }

  /** Words before a text. */
  get start(): readonly string[] {
    return this.table.order > 1 && this.table.probabilities.has("<s>") ? ["<s>"] : [];
  }

  /**
   * Logarithm of the probability of a word.
   *
   * @param before the words before it, at least as many as the model knows together, or all of them
   */
  score(before: readonly string[], word: string): number {
    const { order, probabilities, backoffs } = this.table;
    let sum = 0;
    for (let first = Math.max(0, before.length - order + 1); first < before.length; first++) {
      const context = before.slice(first).join(" ");
      const found = probabilities.get(`${context} ${word}`);
      if (found !== undefined) return sum + found;
      sum += backoffs.get(context) ?? 0;
    }
    return sum + (probabilities.get(word) ?? this.#unknown);
  }

  /** The words before the next one. */
  after(before: readonly string[], word: string): readonly string[] {
    const known = this.table.probabilities.has(word) ? word : "<unk>";
    return [...before, known].slice(Math.max(0, before.length + 2 - this.table.order));
  }
}

/**
 * Reads an n-gram model in ARPA's format: counts, then the n-grams of each length with the base-10 logarithms of their
 * probabilities and backoff weights.
 *
 * @throws TritonError INVALID_ARG with the line that is something else
 */
export function readArpa(path: string): NgramTable {
  const probabilities = new Map<string, number>();
  const backoffs = new Map<string, number>();
  const counts: number[] = [];
  // 0 before the counts, -1 among them, then the length of the n-grams; undefined after the end.
  let length: number | undefined = 0;
  let left = 0;
  for (const [i, line] of linesOf(path).entries()) {
    const text = line.trim();
    const fail = (expected: string) => badLine(path, i, expected, text);
    if (text === "" || length === undefined) continue;
    if (length === 0) {
      // Programs may write about themselves before the counts.
      if (text === "\\data\\") length = -1;
    } else if (text.startsWith("\\")) {
      if (left > 0) throw fail(`${left} more n-grams of ${length} words, as counted`);
      const next: number = Math.max(0, length) + 1;
      const expected = next > counts.length ? "\\end\\" : `\\${next}-grams:`;
      if (counts.length === 0) throw fail("'ngram 1=COUNT'");
      if (text !== expected) throw fail(`'${expected}'`);
      length = next > counts.length ? undefined : next;
      left = counts[next - 1] ?? 0;
    } else if (length === -1) {
      const [, order, count] = /^ngram\s+(\d+)\s*=\s*(\d+)$/.exec(text) ?? [];
      if (Number(order) !== counts.length + 1) throw fail(`'ngram ${counts.length + 1}=COUNT'`);
      counts.push(Number(count));
    } else {
      if (left === 0) throw fail(`${counts[length - 1]} n-grams of ${length} words, as counted`);
      left--;
      const [first, ...words] = text.split(/\s+/);
      const last = words.length === length + 1 ? words.pop() : undefined;
      const [probability, backoff] = [Number(first), Number(last ?? 0)];
      if (words.length !== length || !(probability <= 0) || Number.isNaN(backoff)) {
        const many = length === 1 ? "a word" : `${length} words`;
        throw fail(`a logarithm of a probability, ${many}, and perhaps a logarithm of a weight`);
      }
      const unknown = length === 1 ? undefined : words.find((word) => !probabilities.has(word));
      if (unknown !== undefined) throw fail(`words that are n-grams of 1 word, not '${unknown}'`);
      const name = words.join(" ");
      if (probabilities.has(name)) throw fail(`a new n-gram, not '${name}' again`);
      probabilities.set(name, probability * Math.LN10);
      if (backoff !== 0) backoffs.set(name, backoff * Math.LN10);
    }
  }
  if (length !== undefined) {
    const expected = length === 0 ? "\\data\\" : "\\end\\";
    throw errorFor("INVALID_CONFIG", `${path}: expected a line '${expected}', got none`);
  }
  return { order: counts.length, probabilities, backoffs };
}
