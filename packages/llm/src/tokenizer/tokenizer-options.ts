import type { ModelFiles } from "@tritonjs/core/backend";
import { DeclaredParameters, ParameterReader } from "@tritonjs/core/internal";
import {
  definedMembers,
  errorFor,
  fromConfigDataType,
  type ModelConfig,
  optionTypes,
} from "@tritonjs/protocol";

/** Way in which texts of too many tokens are cut. Only `none` refuses them. */
export type TokenizerTruncation = "longest_first" | "only_first" | "only_second" | "none";

/** Length to which the texts of a request are padded: that of the longest, `maxLength`, or none. */
type TokenizerPadding = "longest" | "max_length" | "none";

/** Options of {@link tokenizer}. What they leave out is as in the tokenizer's files. */
export interface TokenizerOptions {
  /** Directory of `tokenizer.json` and, if there is one, `tokenizer_config.json`. */
  readonly directory: string | URL;
  /** `encode` makes tokens of texts, `decode` makes texts of tokens. @default "encode" */
  readonly direction?: "encode" | "decode";
  /** True for a second input with the text that belongs to the first, such as a question and its context. @default false */
  readonly pair?: boolean;
  /**
   * Sentence for the second text, which stands where the sentence has `{}`: "This example is {}." makes a statement of
   * a label.
   *
   * @default the text alone
   */
  readonly pairTemplate?: string;
  /** Largest number of tokens, special ones included, from 1 to 999,999. @default as in the files, else unlimited */
  readonly maxLength?: number;
  /**
   * The text that is cut when there are more tokens than `maxLength`: of a pair the longer text, the first or the second. `none`
   * refuses such texts.
   *
   * @default as in the files, else "longest_first"
   */
  readonly truncation?: TokenizerTruncation;
  /** Side on which texts are cut. @default as in the files, else "right" */
  readonly truncationSide?: "left" | "right";
  /** Length to which texts are padded. @default as in the files, else "longest" */
  readonly padding?: TokenizerPadding;
  /** Side on which texts are padded. @default as in the files, else "right" */
  readonly paddingSide?: "left" | "right";
  /** Number that padded lengths are a multiple of, so that more requests share a batch. @default as in the files, else 1 */
  readonly padToMultipleOf?: number;
  /** False to leave out the special tokens around the texts. @default true */
  readonly addSpecialTokens?: boolean;
  /** True to encode empty texts; otherwise they are refused. @default false */
  readonly allowEmpty?: boolean;
  /** Data type of the tokens. @default "INT64", as most exported models expect */
  readonly dtype?: "INT64" | "INT32";
  /** False to show special tokens in decoded texts. @default true */
  readonly skipSpecialTokens?: boolean;
  /** Largest text in bytes. @default 1,048,576 (1 MiB) */
  readonly maxBytes?: number;
}

export const TOKENIZER_OPTION_TYPES = optionTypes<TokenizerOptions>({
  directory: "any",
  direction: "string",
  pair: "boolean",
  pairTemplate: "string",
  maxLength: "number",
  truncation: "string",
  truncationSide: "string",
  padding: "string",
  paddingSide: "string",
  padToMultipleOf: "number",
  addSpecialTokens: "boolean",
  allowEmpty: "boolean",
  dtype: "string",
  skipSpecialTokens: "boolean",
  maxBytes: "number",
});

/** Options with their defaults, all checked, and the names of the tensors. Structured cloning keeps them. */
export interface TokenizerPlan extends Omit<TokenizerOptions, "pair" | "directory"> {
  readonly directory: string;
  readonly direction: "encode" | "decode";
  readonly addSpecialTokens: boolean;
  readonly allowEmpty: boolean;
  readonly dtype: "INT64" | "INT32";
  readonly skipSpecialTokens: boolean;
  readonly maxBytes: number;
  readonly inputNames: readonly string[];
  readonly outputNames: readonly string[];
  /** Dims of the inputs without the batch axis: `[1]`, or `[-1]` for several texts. */
  readonly inputDims: readonly (readonly number[])[];
}

const DEFAULTS = {
  direction: "encode",
  addSpecialTokens: true,
  // An empty text is usually a missing one.
  allowEmpty: false,
  dtype: "INT64",
  skipSpecialTokens: true,
  // A text of this size takes about a second.
  maxBytes: 2 ** 20,
} as const satisfies Partial<TokenizerOptions>;

const WORDS = {
  direction: ["encode", "decode"],
  truncation: ["longest_first", "only_first", "only_second", "none"],
  truncationSide: ["left", "right"],
  padding: ["longest", "max_length", "none"],
  paddingSide: ["left", "right"],
  dtype: ["INT64", "INT32"],
} as const;

const LARGEST = { maxLength: 999_999, padToMultipleOf: 65_536, maxBytes: 2 ** 31 - 1 } as const;

/** Outputs of a tokenizer that encodes, in their order. */
const TOKEN_OUTPUTS = ["input_ids", "attention_mask", "token_type_ids"] as const;

/** Names and dims that a configuration gives to tensors. */
type WrittenTensors = Partial<Pick<TokenizerPlan, "inputNames" | "outputNames" | "inputDims">>;

/**
 * Completes and checks options.
 *
 * @throws TritonError INVALID_ARG that names the option
 */
export function planTokenizer(
  { pair, directory, ...options }: Omit<TokenizerOptions, "directory"> & { readonly directory: string },
  written: WrittenTensors = {},
): TokenizerPlan {
  const { direction = DEFAULTS.direction, pairTemplate } = options;
  const isPair = pair ?? (pairTemplate !== undefined || written.inputNames?.length === 2);
  const inputNames = direction === "decode" ? ["ids"] : isPair ? ["text", "text_pair"] : ["text"];
  const plan: TokenizerPlan = {
    ...DEFAULTS,
    inputNames,
    outputNames: direction === "decode" ? ["text"] : TOKEN_OUTPUTS,
    inputDims: direction === "decode" ? [[-1]] : inputNames.map(() => [1]),
    ...options,
    directory,
    ...written,
  };
  for (const name of Object.keys(WORDS) as (keyof typeof WORDS)[]) {
    const value = plan[name];
    const words: readonly string[] = WORDS[name];
    if (value !== undefined && !words.includes(value)) {
      throw optionError(name, `one of ${words.join(", ")}`, `'${value}'`);
    }
  }
  for (const name of Object.keys(LARGEST) as (keyof typeof LARGEST)[]) {
    const value = plan[name];
    if (value !== undefined && !(Number.isInteger(value) && value >= 1 && value <= LARGEST[name])) {
      throw optionError(name, `an integer from 1 to ${LARGEST[name]}`, value);
    }
  }
  if (pairTemplate !== undefined && !pairTemplate.includes("{}")) {
    throw optionError("pairTemplate", "a text with {} for the second text", `'${pairTemplate}'`);
  }
  if (direction === "decode" && isPair) throw optionError("pair", "false with the direction 'decode'", true);
  if (plan.inputNames.length !== inputNames.length) {
    throw optionError("pair", `${inputNames.length} inputs`, plan.inputNames.join(", ") || "none");
  }
  return plan;
}

export function optionError(name: string, expected: string, got: unknown) {
  return errorFor("INVALID_OPTION", `tokenizer: ${name}: expected ${expected}, got ${got}`);
}

/** Parameter with which a configuration says where instances run. */
export const ISOLATION = "isolation";

export const TOKENIZER_PARAMETERS = new DeclaredParameters({
  value: [
    "direction",
    "pair",
    "pair_template",
    "max_length",
    "truncation",
    "truncation_side",
    "padding",
    "padding_side",
    "pad_to_multiple_of",
    "add_special_tokens",
    "allow_empty",
    "dtype",
    "skip_special_tokens",
    "max_bytes",
    ISOLATION,
  ],
});

/**
 * Reads the options of a model of a repository: parameters with the names of the options in snake case, and the tensors
 * that the configuration lists. A listed input of integers means `decode`, a second input a pair.
 *
 * @throws TritonError INVALID_ARG for unknown parameters, invalid values, and tensors that a tokenizer cannot have
 */
export function planOfModel(source: ModelFiles): TokenizerPlan {
  const { config, versionDirectory: directory } = source;
  const { input, output } = config;
  const read = new ParameterReader(source, TOKENIZER_PARAMETERS);
  const options: Record<string, unknown> = definedMembers({
    direction: read.text("direction"),
    pair: read.flag("pair"),
    pairTemplate: read.text("pairTemplate"),
    maxLength: read.number("maxLength"),
    truncation: read.text("truncation"),
    truncationSide: read.text("truncationSide"),
    padding: read.text("padding"),
    paddingSide: read.text("paddingSide"),
    padToMultipleOf: read.number("padToMultipleOf"),
    addSpecialTokens: read.flag("addSpecialTokens"),
    allowEmpty: read.flag("allowEmpty"),
    dtype: read.text("dtype"),
    skipSpecialTokens: read.flag("skipSpecialTokens"),
    maxBytes: read.number("maxBytes"),
  });
  read.assertNoOthers();
  const dtypes = input.map((one) => fromConfigDataType(one.dataType));
  if (dtypes[0] === "INT64" || dtypes[0] === "INT32") options.direction ??= "decode";
  const decodes = options.direction === "decode";
  const tokens = decodes ? dtypes[0] : output[0] && fromConfigDataType(output[0].dataType);
  if (tokens !== undefined) options.dtype ??= tokens;
  return planTokenizer({ ...options, directory }, { ...tensorsOf(config, decodes) });
}

function tensorsOf({ name, input, output }: ModelConfig, decodes: boolean): WrittenTensors {
  const outputs = output.map((one) => one.name);
  const strange = outputs.find((one) => !decodes && !TOKEN_OUTPUTS.some((known) => known === one));
  if (strange !== undefined) {
    const text = `model '${name}': expected outputs of ${TOKEN_OUTPUTS.join(", ")}, got '${strange}'`;
    throw errorFor("INVALID_CONFIG", text);
  }
  return {
    ...(input.length > 0
      ? { inputNames: input.map((one) => one.name), inputDims: input.map((one) => one.dims) }
      : {}),
    ...(outputs.length > 0 ? { outputNames: outputs } : {}),
  };
}
