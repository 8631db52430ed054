import { errorFor, type TritonError } from "@tritonjs/protocol";
import type { SplitText, TextTokenizer } from "../text-tokenizer.js";
import type { Parts } from "../turns.js";
import { optionError, type TokenizerPlan, type TokenizerTruncation } from "./tokenizer-options.js";

/** The parts of `tokenizer.json` and `tokenizer_config.json` that cut and pad texts. */
interface LengthFiles {
  readonly tokenizer: Readonly<Record<string, unknown>>;
  readonly config: Readonly<Record<string, unknown>>;
}

/** A text, or a pair of texts, as the model gets it. */
export interface EncodedText {
  readonly ids: readonly number[];
  readonly types: readonly number[];
}

/** Texts of a request, padded to one length. */
interface PaddedTexts {
  readonly length: number;
  /** Values of the outputs, row by row. */
  readonly input_ids: readonly number[];
  readonly attention_mask: readonly number[];
  readonly token_type_ids: readonly number[];
}

/** Encodes, cuts and pads texts, as the library `tokenizers` of Hugging Face does with the same files. */
export class TokenEncoder {
  readonly #rules: LengthRules;
  readonly #specials: readonly [one: number, pair: number];

  /** @throws TritonError INVALID_ARG for a length that leaves no room for text */
  constructor(
    private readonly tokenizer: TextTokenizer,
    private readonly plan: TokenizerPlan,
    files: LengthFiles,
  ) {
    this.#rules = lengthRules(tokenizer, plan, files);
    const none = { tokens: [], ids: [] };
    this.#specials = plan.addSpecialTokens
      ? [tokenizer.join(none).ids.length, tokenizer.join(none, none).ids.length]
      : [0, 0];
    const { maxLength } = this.#rules;
    const specials = this.#specials[plan.inputNames.length - 1]!;
    if (maxLength <= specials) {
      throw optionError("maxLength", `more than the ${specials} special tokens of this tokenizer`, maxLength);
    }
  }

  /**
   * Encodes a text, or a pair of texts, in parts. Texts that may not be cut are refused by their bytes, if the vocabulary
   * tells.
   *
   * @param row for error messages; undefined for a request with a single row
   * @throws TritonError INVALID_ARG for a text of too many tokens that may not be cut
   */
  *encode(texts: readonly string[], row: number | undefined): Parts<EncodedText> {
    const { tokenizer } = this;
    const normalized: string[] = [];
    for (const text of texts) normalized.push(yield* tokenizer.normalizeInParts(text));
    const room = this.#rules.maxLength - this.#specials[texts.length - 1]!;
    const fewest = normalized.map((text) => tokenizer.fewestTokens(text));
    if (this.#rules.truncation === "none" && sumOf(fewest) > room) {
      throw this.#tooLong(fewest, room, row, "at least ");
    }
    const split: SplitText[] = [];
    for (const text of normalized) split.push(yield* tokenizer.splitInParts(text));
    const [first, second] = this.#cut(split, room, row);
    if (this.plan.addSpecialTokens) return this.tokenizer.join(first!, second);
    const ids = [...first!.ids, ...(second?.ids ?? [])];
    return { ids, types: ids.map((_, place) => (place < first!.ids.length ? 0 : 1)) };
  }

  /**
   * Brings the texts of a request to one length.
   *
   * @throws TritonError INVALID_ARG for texts of different lengths without padding
   */
  pad(texts: readonly EncodedText[]): PaddedTexts {
    const { padding, padLength, multiple, left } = this.#rules;
    const lengths = texts.map(({ ids }) => ids.length);
    const longest = Math.max(...lengths);
    let length = Math.max(padding === "max_length" ? padLength : 0, longest);
    if (padding !== "none") length = Math.ceil(length / multiple) * multiple;
    else if (Math.min(...lengths) < longest) {
      throw errorFor(
        "INVALID_INPUT",
        `input '${this.plan.inputNames[0]}': expected texts of ${longest} tokens without padding, got ` +
          `${Math.min(...lengths)}; set padding to 'longest' or 'max_length'`,
      );
    }
    const fill = (count: number, value: number) => Array.from({ length: count }, () => value);
    const padded = (values: readonly number[], value: number) => {
      const rest = fill(length - values.length, value);
      return left ? [...rest, ...values] : [...values, ...rest];
    };
    const { padId, padType } = lengths.every((one) => one === length) ? NO_PAD : this.#padToken();
    return {
      length,
      input_ids: texts.flatMap(({ ids }) => padded(ids, padId)),
      attention_mask: texts.flatMap(({ ids }) => padded(fill(ids.length, 1), 0)),
      token_type_ids: texts.flatMap(({ types }) => padded(types, padType)),
    };
  }

  #padToken(): PadToken {
    const { pad } = this.#rules;
    if (pad !== undefined) return pad;
    throw errorFor(
      "INVALID_MODEL",
      "cannot pad texts: expected a padding token in tokenizer.json or tokenizer_config.json, got none; set padding to 'none'",
    );
  }

  #cut(texts: readonly SplitText[], room: number, row: number | undefined): readonly SplitText[] {
    const lengths = texts.map(({ ids }) => ids.length);
    if (sumOf(lengths) <= room) return texts;
    const kept = keptTokens(lengths, room, this.#rules.truncation);
    if (kept === undefined) throw this.#tooLong(lengths, room, row);
    return texts.map((text, i) => this.#part(text, kept[i]!));
  }

  #part({ tokens, ids }: SplitText, count: number): SplitText {
    const start = this.#rules.cutsLeft ? ids.length - count : 0;
    return { tokens: tokens.slice(start, start + count), ids: ids.slice(start, start + count) };
  }

  #tooLong(lengths: readonly number[], room: number, row: number | undefined, atLeast = ""): TritonError {
    const { inputNames } = this.plan;
    const { truncation } = this.#rules;
    const which = truncation === "only_second" ? 1 : 0;
    const other = lengths[1 - which] ?? 0;
    // With one text cut, the other one is too long by itself.
    const cutsOne = truncation !== "none";
    const place = row === undefined ? "" : `, row ${row}`;
    const name = inputNames[cutsOne ? 1 - which : 0];
    const got = cutsOne ? other : sumOf(lengths);
    const most = cutsOne ? room - 1 : room;
    const hint = cutsOne ? `'${truncation}' cuts only '${inputNames[which]}'` : "truncation is 'none'";
    return errorFor(
      "INVALID_INPUT",
      `input '${name}'${place}: expected at most ${most} tokens, got ${atLeast}${got}; ${hint}`,
    );
  }
}

/**
 * Number of tokens that are kept of each text.
 *
 * @param room tokens that fit in all
 * @returns undefined if the text that may be cut is too short
 */
function keptTokens(
  lengths: readonly number[],
  room: number,
  truncation: TokenizerTruncation,
): readonly number[] | undefined {
  if (truncation === "none") return undefined;
  const tooMany = sumOf(lengths) - room;
  if (truncation === "longest_first") {
    return lengths.length === 1 ? [room] : longestFirst(lengths[0]!, lengths[1]!, room);
  }
  const which = truncation === "only_first" ? 0 : 1;
  const length = lengths[which] ?? 0;
  return length > tooMany ? lengths.map((one, i) => (i === which ? one - tooMany : one)) : undefined;
}

function sumOf(lengths: readonly number[]): number {
  return lengths.reduce((sum, one) => sum + one, 0);
}

/** The shorter text is kept as long as the longer one can be cut to its length. Half the room is for each after that. */
function longestFirst(first: number, second: number, room: number): readonly number[] {
  let shorter = Math.min(first, second);
  let longer = shorter > room ? shorter : Math.max(shorter, room - shorter);
  if (shorter + longer > room) {
    shorter = Math.floor(room / 2);
    longer = shorter + (room % 2);
  }
  return first > second ? [longer, shorter] : [shorter, longer];
}

/** How texts are cut and padded. */
interface LengthRules {
  /** Infinity for texts of any length. */
  readonly maxLength: number;
  readonly truncation: TokenizerTruncation;
  readonly cutsLeft: boolean;
  readonly padding: "longest" | "max_length" | "none";
  /** Length with the padding `max_length`. */
  readonly padLength: number;
  readonly left: boolean;
  readonly multiple: number;
  /** Undefined if the files name no padding token. */
  readonly pad: PadToken | undefined;
}

interface PadToken {
  readonly padId: number;
  readonly padType: number;
}

const NO_PAD: PadToken = { padId: 0, padType: 0 };

/** Files have a number as large as this for a model without a limit. */
const NO_LIMIT = 1e6;

const STRATEGIES: Readonly<Record<string, TokenizerTruncation>> = {
  LongestFirst: "longest_first",
  OnlyFirst: "only_first",
  OnlySecond: "only_second",
};

/** Options come before `tokenizer.json`, and that before `tokenizer_config.json`. */
function lengthRules(
  tokenizer: TextTokenizer,
  plan: TokenizerPlan,
  { tokenizer: file, config }: LengthFiles,
): LengthRules {
  const cut = objectOf(file.truncation);
  const pad = objectOf(file.padding);
  const limit = numberOf(cut.max_length) ?? numberOf(config.model_max_length);
  const fixed = numberOf(objectOf(pad.strategy).Fixed);
  const found = plan.maxLength ?? limit ?? NO_LIMIT;
  const maxLength = found < NO_LIMIT ? found : Number.POSITIVE_INFINITY;
  const side = (value: unknown) => typeof value === "string" && value.toLowerCase() === "left";
  const padding = plan.padding ?? (fixed === undefined ? "longest" : "max_length");
  const padLength = (plan.padding === undefined ? fixed : undefined) ?? maxLength;
  if (padding === "max_length" && !Number.isFinite(padLength)) {
    throw optionError("maxLength", "a number for the padding 'max_length'", "none");
  }
  return {
    maxLength,
    padLength,
    truncation: plan.truncation ?? STRATEGIES[String(cut.strategy)] ?? "longest_first",
    cutsLeft: side(plan.truncationSide ?? cut.direction ?? config.truncation_side),
    padding,
    left: side(plan.paddingSide ?? pad.direction ?? config.padding_side),
    multiple: plan.padToMultipleOf ?? numberOf(pad.pad_to_multiple_of) ?? 1,
    pad: padToken(tokenizer, pad, config),
  };
}

function padToken(
  tokenizer: TextTokenizer,
  pad: Readonly<Record<string, unknown>>,
  { pad_token: named }: LengthFiles["config"],
): PadToken | undefined {
  const padId = numberOf(pad.pad_id) ?? tokenizer.idOf(String(objectOf(named).content ?? named));
  return padId === undefined ? undefined : { padId, padType: numberOf(pad.pad_type_id) ?? 0 };
}

function objectOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : {};
}

function numberOf(value: unknown): number | undefined {
  return typeof value === "number" ? value : undefined;
}
