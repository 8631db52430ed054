/** Form that the text must have, for structured output. */
export type ResponseFormat =
  | { readonly type: "text" }
  | { readonly type: "json_object" }
  /** `strict: false` allows properties that the schema does not name. */
  | { readonly type: "json_schema"; readonly schema: unknown; readonly strict?: false }
  /** Formats of vLLM: a regular expression, one of several texts, a grammar in EBNF. */
  | { readonly type: "regex"; readonly pattern: string }
  | { readonly type: "choice"; readonly texts: readonly string[] }
  | { readonly type: "grammar"; readonly grammar: string };

/**
 * How a request wants its text: the parameters of OpenAI and vLLM, in camelCase. A parameter that the request does not
 * set is absent, so that a model can have defaults of its own.
 */
export interface SamplingParameters {
  /** Largest number of tokens to generate, at least 1. */
  readonly maxTokens?: number;
  /** Tokens to generate before the text may end, at least 0. */
  readonly minTokens?: number;
  /** 0 always takes the most likely token. Higher values, at most 100, make rare tokens more likely. */
  readonly temperature?: number;
  /** Takes one of the most likely tokens whose probabilities add up to this, above 0 and at most 1. */
  readonly topP?: number;
  /** Takes one of this number of most likely tokens; 0 for all tokens. */
  readonly topK?: number;
  /** Leaves out tokens below this share of the highest probability, 0 to 1. */
  readonly minP?: number;
  /** Divides the scores of tokens of the prompt and the text, above 0; 1 has no effect. */
  readonly repetitionPenalty?: number;
  /** Lowers the scores of tokens that are in the text, -2 to 2. */
  readonly presencePenalty?: number;
  /** Lowers the scores of tokens by how often they are in the text, -2 to 2. */
  readonly frequencyPenalty?: number;
  /** Same seed, same text. An integer. */
  readonly seed?: number;
  /** Strings that end the text: at most 16, none of them empty. */
  readonly stop?: readonly string[];
  /** Numbers of tokens that end the text. */
  readonly stopTokenIds?: readonly number[];
  /** True if the text ends with the string that ended it. */
  readonly includeStopStrInOutput?: boolean;
  /** True if the model's end token does not end the text. */
  readonly ignoreEos?: boolean;
  /** False if the text shows the model's special tokens. */
  readonly skipSpecialTokens?: boolean;
  /** Scores to add by the number of the token, -100 to 100. */
  readonly logitBias?: Readonly<Record<number, number>>;
  /** Numbers of the only tokens that may be chosen: at least one. */
  readonly allowedTokenIds?: readonly number[];
  /** Texts that must not be generated: at most 64, none of them empty. */
  readonly badWords?: readonly string[];
  /** Number of most likely tokens to report for each token of the text, 0 to 20. */
  readonly logprobs?: number;
  /** Form that the text must have. @default any text */
  readonly responseFormat?: ResponseFormat;
}
