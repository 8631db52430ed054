import { Tokenizer } from "@huggingface/tokenizers";
import { LinearPattern } from "./linear-pattern.js";
import { pieceOfByte, spellingOfBytes, type TokenizerJson } from "./token-spelling.js";

/*
 * A `tokenizer.json` comes with a model. Each of its parts can ask for any amount of work, and its regular expressions
 * for exponential time. These functions refuse files that do, and say what a text is at least in tokens.
 */

/** Characters of a regular expression. Those of tokenizers have at most some thousands. */
const MOST_PATTERN = 16_384;
/** Characters of a text that is looked for, put in, or added to the vocabulary. */
const MOST_TEXT = 512;
/** Characters that a normalizer makes of one, without those of Unicode. */
const MOST_GROWTH = 64;
/** Steps of a normalizer, a pre-tokenizer or a decoder. */
const MOST_STEPS = 256;
/** Characters of a word that is split into pieces. BERT has 100. */
const MOST_WORD = 1_000;

/** A step of a normalizer, a pre-tokenizer or a decoder. */
interface Step {
  readonly type?: unknown;
  readonly pattern?: { readonly Regex?: unknown; readonly String?: unknown };
  readonly content?: unknown;
  readonly [name: string]: unknown;
}

/** The steps of a part, and of the sequences in it. @throws RangeError for too many */
function stepsOf(part: unknown): Step[] {
  const steps: Step[] = [];
  const left: unknown[] = [part];
  while (left.length > 0) {
    const one = left.pop();
    if (typeof one !== "object" || one === null) continue;
    steps.push(one as Step);
    if (steps.length > MOST_STEPS) throw new RangeError(`more than ${MOST_STEPS} steps in a row`);
    for (const name of ["decoders", "pretokenizers", "normalizers"]) {
      const inner = (one as Step)[name];
      if (Array.isArray(inner)) for (let i = inner.length - 1; i >= 0; i--) left.push(inner[i]);
    }
  }
  return steps;
}

/**
 * Checks the parts of a file that are used for each text, before a library gets it.
 *
 * @throws RangeError for a part that could make a text much longer, or that takes too much time
 */
function assertTokenizerLimits(json: TokenizerJson): void {
  const steps = [json.normalizer, json.pre_tokenizer, json.decoder].map(stepsOf);
  for (const { type, pattern, length, ...texts } of steps.flat()) {
    const { Regex: regex, String: text } = Object(pattern) as NonNullable<Step["pattern"]>;
    if (typeof regex === "string" && regex.length > MOST_PATTERN) {
      throw new RangeError(`a pattern of ${regex.length} characters, more than ${MOST_PATTERN}`);
    }
    for (const one of [text, texts.content, texts.prepend, texts.replacement, texts.str_rep]) {
      if (typeof one !== "string" || one.length <= MOST_TEXT) continue;
      throw new RangeError(`a text of ${one.length} characters in a step ${type}, more than ${MOST_TEXT}`);
    }
    if (type === "FixedLength" && !(Number.isInteger(length) && (length as number) >= 1)) {
      throw new RangeError(`parts of ${length} characters`);
    }
  }
  for (const part of steps) {
    const growth = part.reduce((product, step) => product * growthOf(step), 1);
    if (growth > MOST_GROWTH) {
      throw new RangeError(`steps that may make a text ${growth} times as long, more than ${MOST_GROWTH}`);
    }
  }
  for (const { content } of json.added_tokens ?? []) {
    if (content.length > MOST_TEXT) {
      throw new RangeError(`an added token of ${content.length} characters, more than ${MOST_TEXT}`);
    }
  }
  const word = json.model?.max_input_chars_per_word ?? 0;
  if (!(word <= MOST_WORD)) throw new RangeError(`words of ${word} characters, more than ${MOST_WORD}`);
}

/** Characters that a step makes of one at most. */
function growthOf({ type, pattern, content, prepend, replacement, str_rep }: Step): number {
  const lengthOf = (text: unknown) => (typeof text === "string" ? text.length : 0);
  if (type === "Prepend") return 1 + lengthOf(prepend);
  if (type === "Metaspace") return 1 + Math.max(lengthOf(replacement), lengthOf(str_rep));
  if (type !== "Replace") return 1;
  const found = pattern?.String;
  if (typeof found !== "string" || found === "") return 1 + lengthOf(content);
  return Math.max(1, lengthOf(content) / found.length);
}

/** A normalizer, a pre-tokenizer or a decoder of the library, whose own types Node's resolution does not find. */
interface Part {
  readonly normalizers?: readonly (Part | null)[];
  readonly tokenizers?: readonly (Part | null)[];
  readonly decoders?: readonly (Part | null)[];
  readonly config?: { readonly pattern?: object };
  pattern?: RegExp | LinearPattern | null;
}

/** Puts patterns of linear time in the place of the regular expressions of a part, and returns them. */
function boundPatterns(part: Part | null): readonly LinearPattern[] {
  if (part === null) return [];
  const inner = part.normalizers ?? part.tokenizers ?? part.decoders;
  if (inner !== undefined) return inner.flatMap(boundPatterns);
  // Those that the library has itself take linear time, and so do texts.
  if (!(part.pattern instanceof RegExp) || !("Regex" in Object(part.config?.pattern))) return [];
  const pattern = new LinearPattern(part.pattern.source);
  part.pattern = pattern;
  return [pattern];
}

/**
 * Opens a tokenizer whose patterns take linear time.
 *
 * @throws Error for a file that the library cannot read, or whose normalizer would take long for its added tokens
 */
export function openBounded(json: TokenizerJson, config: object): Tokenizer {
  assertTokenizerLimits(json);
  // The library normalizes added tokens when it opens a file, before their patterns can be replaced.
  const { normalizer } = new Tokenizer({ ...EMPTY, normalizer: json.normalizer ?? null }, {});
  const patterns = boundPatterns(normalizer);
  for (const pattern of patterns) pattern.isTrial = true;
  for (const { content, special, normalized = !special } of patterns.length > 0
    ? (json.added_tokens ?? [])
    : []) {
    if (normalized) normalizer?.normalize(content);
  }
  const tokenizer = new Tokenizer(json, config);
  boundPatterns(tokenizer.normalizer);
  boundPatterns(tokenizer.pre_tokenizer);
  boundPatterns(tokenizer.decoder);
  return tokenizer;
}

const EMPTY = {
  added_tokens: [],
  pre_tokenizer: null,
  post_processor: null,
  decoder: null,
  model: { type: "BPE", vocab: {}, merges: [] },
};

/** How many times fewer bytes than a text its tokens may stand for; Infinity if that cannot be told. */
export function shrinkOf(json: TokenizerJson, config: object): number {
  const { remove_space, do_lowercase_and_remove_accent } = config as Record<string, unknown>;
  if (remove_space === true || do_lowercase_and_remove_accent === true) return Number.POSITIVE_INFINITY;
  const steps = [...stepsOf(json.normalizer ?? null), ...stepsOf(json.pre_tokenizer ?? null)];
  const shrink = steps.reduce((product, step) => product * shrinkOfStep(step), 1);
  return hasAllBytes(json) ? shrink : Number.POSITIVE_INFINITY;
}

/**
 * Steps that keep all characters, and by how much they may shorten the bytes of one: a Kelvin sign of three bytes becomes
 * a letter of one.
 */
const SHRINKS: Readonly<Record<string, number>> = {
  Sequence: 1,
  Prepend: 1,
  ByteLevel: 1,
  Metaspace: 1,
  Digits: 1,
  Punctuation: 1,
  FixedLength: 1,
  NFC: 3,
  NFD: 3,
  NFKC: 4,
  NFKD: 4,
  Lowercase: 3,
};

function shrinkOfStep({ type, pattern, content, invert, behavior }: Step): number {
  if (type === "Split") {
    const drops = invert === true || String(behavior).toLowerCase() === "removed";
    return drops ? Number.POSITIVE_INFINITY : 1;
  }
  if (type === "Replace") {
    const found = pattern?.String;
    if (typeof found !== "string" || typeof content !== "string" || content === "") return Infinity;
    return Math.max(1, Buffer.byteLength(found) / Buffer.byteLength(content));
  }
  return SHRINKS[String(type)] ?? Number.POSITIVE_INFINITY;
}

/** True if every byte of a text is a part of a token: none is left out, or unknown together with others. */
function hasAllBytes({ model, pre_tokenizer }: TokenizerJson): boolean {
  const { type, vocab = {}, byte_fallback } = model ?? {};
  const known = Array.isArray(vocab)
    ? new Set<unknown>(vocab.map((entry) => (Array.isArray(entry) ? entry[0] : undefined)))
    : new Set<unknown>(Object.keys(vocab));
  const bytes = Array.from({ length: 256 }, (_, byte) => byte);
  if (byte_fallback === true && bytes.every((byte) => known.has(pieceOfByte(byte)))) return true;
  const isByteLevel = stepsOf(pre_tokenizer ?? null).some((step) => step.type === "ByteLevel");
  return (
    type === "BPE" && isByteLevel && bytes.every((byte) => known.has(spellingOfBytes(Uint8Array.of(byte))))
  );
}
