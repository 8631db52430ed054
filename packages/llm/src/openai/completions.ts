import type { TextFinishReason } from "../text-callback.js";
import { type AnswerOptions, answer, ChoicesWriter, type WholeAnswer, type WholeChoice } from "./answers.js";
import type { RequestLimits } from "./chat-request.js";
import { type ChoiceDelta, Generation, type PromptCall, type RankedToken } from "./generation.js";
import { emptyField, invalidField, missingField, type OpenAiError, wrongType } from "./openai-error.js";
import { inferenceRoute } from "./openai-exchange.js";
import {
  type Fields,
  isIntegers,
  MOST_TOKENS,
  readSampling,
  readStreamOptions,
  type Sampling,
  type StreamOptions,
} from "./request-fields.js";
import { type TextModel, textModelOf } from "./text-model.js";

/** Route of completions of prompts: `POST /v1/completions`. */
export function completionsRoute(limits: RequestLimits) {
  return inferenceRoute(/^\/v1\/completions$/, async (exchange) => {
    const completion = await exchange.readBody((fields) => readCompletionRequest(fields, limits));
    const lookUp = await exchange.lookUpModel(completion.model);
    const model = textModelOf(lookUp.current().config);
    const calls = completion.prompts.map((prompt) => callOf(model, completion, prompt));
    const generation = new Generation(exchange, lookUp, model, calls);
    return answer(exchange, generation, completion.stream.stream, new CompletionWriter(completion, calls));
  });
}

/** Text of a prompt, or its tokens. */
type Prompt = string | readonly number[];

interface Completion extends AnswerOptions {
  readonly prompts: readonly Prompt[];
  /** Number of choices of each prompt in the answer. */
  readonly choices: number;
  /** Number of texts of each prompt, of which the answer has the most likely ones: `best_of`. */
  readonly candidates: number;
  readonly sampling: Sampling;
  readonly stream: StreamOptions;
  readonly echo: boolean;
  /** Whether tokens are shown as `token_id:` and their number. */
  readonly tokenIds: boolean;
}

const DEFAULT_MAX_TOKENS = 16;
const MOST_LOGPROBS = 5;

/**
 * Reads the body of `POST /v1/completions`.
 *
 * @throws OpenAiError 400 for the first field at fault
 */
function readCompletionRequest(
  fields: Fields,
  { maxChoices, defaultMaxTokens = DEFAULT_MAX_TOKENS }: RequestLimits,
): Completion {
  const model = fields.requiredString("model");
  const prompts = readPrompts(fields);
  const choices = fields.integer("n", 1, maxChoices) ?? 1;
  const candidates = fields.integer("best_of", choices, maxChoices) ?? choices;
  if (candidates * prompts.length > maxChoices) {
    const name = candidates > choices ? "best_of" : "n";
    const text = `'${name}': expected at most ${maxChoices} choices for all prompts, got ${candidates} for each of ${prompts.length}`;
    throw invalidField(name, text);
  }
  if ((fields.string("suffix") ?? "") !== "") {
    const text = "'suffix': expected none, got a text; models continue a prompt at its end";
    throw invalidField("suffix", text, "unsupported_parameter");
  }
  const topLogprobs = fields.integer("logprobs", 0, MOST_LOGPROBS);
  const stream = readStreamOptions(fields);
  if (stream.stream && candidates > choices) {
    const text = `'best_of': expected the same number as 'n' (${choices}) in a stream, got ${candidates}`;
    throw invalidField("best_of", text);
  }
  const sampling = readSampling(fields);
  sampling.max_tokens = fields.integer("max_tokens", 0, MOST_TOKENS) ?? defaultMaxTokens;
  if (topLogprobs !== undefined) sampling.logprobs = topLogprobs;
  return {
    model,
    prompts,
    choices,
    candidates,
    sampling,
    topLogprobs,
    stream,
    includeUsage: stream.includeUsage,
    echo: fields.boolean("echo") ?? false,
    tokenIds: fields.boolean("return_tokens_as_token_ids") ?? false,
  };
}

function readPrompts(fields: Fields): readonly Prompt[] {
  const given = fields.any("prompt");
  const expected = "a string, an array of tokens, or an array of these";
  if (given === undefined) throw missingField("prompt", expected);
  const isOne = !Array.isArray(given) || typeof given[0] === "number";
  const prompts: readonly unknown[] = isOne ? [given] : given;
  if (prompts.length === 0) throw emptyField("prompt", "prompt");
  return prompts.map((prompt) => {
    if (typeof prompt === "string" && prompt !== "") return prompt;
    if (prompt === "") throw invalidField("prompt", "'prompt': expected text that is not empty");
    if (!Array.isArray(prompt)) throw wrongType("prompt", expected, prompt);
    if (prompt.length === 0) throw emptyField("prompt", "token");
    if (isIntegers(prompt) && prompt.every((token) => token >= 0 && token <= MOST_TOKENS)) return prompt;
    throw wrongType("prompt", expected, prompt);
  });
}

/** A prompt as a call of the model, and how the answer repeats it. */
interface CompletionCall extends PromptCall {
  /** The prompt, if the answer begins with it. */
  readonly echoed: Prompt | undefined;
  /** True for `max_tokens: 0` to a model that has to generate a token, which is left out. */
  readonly drops: boolean;
}

/** @throws OpenAiError 400 for a model that cannot do what the request asks for */
function callOf(model: TextModel, completion: Completion, prompt: Prompt): CompletionCall {
  const { choices, candidates, topLogprobs, stream, echo } = completion;
  if (model.promptInput === undefined) {
    const text = `model '${model.name}' cannot take a prompt: expected an input 'text_input'. Send messages to /v1/chat/completions`;
    throw invalidField("model", text, "model_not_supported");
  }
  const ranks = candidates > choices;
  if (ranks && !model.outputs.has("logprobs")) throw reportsNot(model, "best_of", "logprobs");
  const promptLogprobs = echo && (topLogprobs !== undefined || typeof prompt !== "string");
  if (promptLogprobs && !model.outputs.has("prompt_logprobs")) {
    throw reportsNot(model, "echo", "prompt_logprobs");
  }
  const drops = completion.sampling.max_tokens === 0 && !model.inputs.has("messages");
  const sampling = {
    ...completion.sampling,
    ...(ranks && { logprobs: topLogprobs ?? 0 }),
    ...(promptLogprobs && { prompt_logprobs: topLogprobs ?? 0 }),
    // Engines want to generate at least one token.
    ...(drops && { max_tokens: 1 }),
  };
  return {
    prompt,
    choices: candidates,
    sampling,
    logprobs: ranks || topLogprobs !== undefined,
    promptLogprobs,
    stream: stream.stream,
    echoed: echo ? prompt : undefined,
    drops,
  };
}

function reportsNot({ name }: TextModel, field: string, output: string): OpenAiError {
  const text = `'${field}': model '${name}' cannot serve it: expected a model with the output '${output}', got none`;
  return invalidField(field, text, "unsupported_value");
}

class CompletionWriter extends ChoicesWriter {
  readonly #choices: readonly CompletionChoice[];

  constructor(
    private readonly completion: Completion,
    calls: readonly CompletionCall[],
  ) {
    super(completion, "cmpl-", "text_completion", "text_completion");
    this.#choices = calls.flatMap((call) =>
      Array.from({ length: call.choices }, () => new CompletionChoice(call, completion)),
    );
  }

  protected override kept(choices: WholeAnswer["choices"]): readonly number[] {
    const { choices: count, candidates } = this.completion;
    const all = [...choices.keys()];
    if (count === candidates) return all;
    return this.completion.prompts.flatMap((_, prompt) =>
      all
        .slice(prompt * candidates, (prompt + 1) * candidates)
        .sort((a, b) => meanLogprob(choices[b]!) - meanLogprob(choices[a]!))
        .slice(0, count),
    );
  }

  protected wholeChoice({ text, prompt, logprobs, finishReason }: WholeChoice, index: number): object {
    const choice = this.#choices[index]!;
    const echoed = choice.echo(prompt);
    return {
      text: echoed + choice.text(text),
      logprobs: choice.logprobs(prompt, logprobs),
      finish_reason: choice.reason(finishReason),
    };
  }

  begin(): string {
    return this.#choices
      .map((choice, index) => {
        const text = choice.waitsForPrompt ? "" : choice.echo([]);
        return text === "" ? "" : this.chunk(index, { text }, null, null);
      })
      .join("");
  }

  delta(index: number, { text, prompt, logprobs }: ChoiceDelta): string {
    const choice = this.#choices[index]!;
    const echoed = prompt.length > 0 ? choice.echo(prompt) : "";
    const shown = echoed + choice.text(text);
    const tokens = choice.logprobs(prompt, logprobs);
    return shown === "" && tokens === null ? "" : this.chunk(index, { text: shown }, tokens, null);
  }

  choiceEnd(index: number, reason: TextFinishReason): string {
    return this.chunk(index, { text: "" }, null, this.#choices[index]!.reason(reason));
  }
}

/** Mean log probability of a text's tokens, by which OpenAI's API chooses the best one. */
function meanLogprob({ logprobs }: WholeChoice): number {
  const sum = logprobs.reduce((total, { logprob }) => total + logprob, 0);
  return logprobs.length === 0 ? Number.NEGATIVE_INFINITY : sum / logprobs.length;
}

/** Writes the parts of one choice: its text with the prompt before it, and the places of its tokens. */
class CompletionChoice {
  readonly #decoder = new TextDecoder("utf-8", { ignoreBOM: true });
  /** Characters of the tokens that were reported. */
  #offset = 0;

  constructor(
    private readonly call: CompletionCall,
    private readonly options: Pick<Completion, "topLogprobs" | "tokenIds">,
  ) {
    const { echoed, promptLogprobs } = call;
    if (typeof echoed === "string" && !promptLogprobs) this.#offset = [...echoed].length;
  }

  /** True if the prompt comes with its tokens from the model. */
  get waitsForPrompt(): boolean {
    return this.call.promptLogprobs === true;
  }

  /** The prompt, if it is repeated: its own text, or that of its tokens. */
  echo(tokens: readonly RankedToken[]): string {
    const { echoed } = this.call;
    if (echoed === undefined || typeof echoed === "string") return echoed ?? "";
    return Buffer.concat(tokens.map(({ bytes }) => bytes)).toString();
  }

  text(text: string): string {
    return this.call.drops ? "" : text;
  }

  reason(reason: TextFinishReason): string {
    if (this.call.drops) return "length";
    return reason === "tool_calls" ? "stop" : reason;
  }

  /**
   * @param prompt tokens of the prompt. The first one has no probability
   * @param generated tokens of the text
   */
  logprobs(prompt: readonly RankedToken[], generated: readonly RankedToken[]): object | null {
    const { topLogprobs } = this.options;
    const tokens = [...prompt, ...(this.call.drops ? [] : generated)];
    if (topLogprobs === undefined || tokens.length === 0) return null;
    const isFirst = (index: number) => index === 0 && prompt.length > 0;
    const { echoed } = this.call;
    const offsets =
      typeof echoed === "string" && prompt.length > 0
        ? this.#placesIn(Buffer.from(echoed), prompt).concat(this.#places(tokens.slice(prompt.length)))
        : this.#places(tokens);
    return {
      tokens: tokens.map((one) => this.#key(one)),
      token_logprobs: tokens.map(({ logprob }, i) => (isFirst(i) ? null : logprob)),
      top_logprobs:
        topLogprobs === 0 ? null : tokens.map((one, i) => (isFirst(i) ? null : this.#top(one, topLogprobs))),
      text_offset: offsets,
    };
  }

  /** The most likely tokens and the chosen one, as in OpenAI's API. Of two with the same text, the likelier counts. */
  #top(chosen: RankedToken, count: number): Record<string, number> {
    const top: Record<string, number> = {};
    for (const one of [...chosen.top.slice(0, count), chosen]) top[this.#key(one)] ??= one.logprob;
    return top;
  }

  /** A token as text. One that is not text by itself shows its bytes, so that two of them stay apart. */
  #key({ token, bytes, id }: Pick<RankedToken, "token" | "bytes" | "id">): string {
    if (this.options.tokenIds && id !== undefined) return `token_id:${id}`;
    if (Buffer.from(token).equals(bytes)) return token;
    return `bytes:${[...bytes].map((byte) => `\\x${byte.toString(16).padStart(2, "0")}`).join("")}`;
  }

  #places(tokens: readonly RankedToken[]): number[] {
    return tokens.map(({ bytes }) => this.#advance(bytes));
  }

  /** Places of a prompt's tokens in its text. Tokens that were added around it, such as the first one, have no length. */
  #placesIn(text: Buffer, tokens: readonly RankedToken[]): number[] {
    let at = 0;
    return tokens.map(({ bytes }) => {
      // SentencePiece begins with a space that the text need not have.
      const own = [bytes, ...(at === 0 && bytes[0] === 0x20 ? [bytes.subarray(1)] : [])];
      const found = own.find((one) => text.subarray(at, at + one.length).equals(one)) ?? bytes.subarray(0, 0);
      at += found.length;
      return this.#advance(found);
    });
  }

  /** Moves on by a token, and returns where it began, in characters as Python counts them. */
  #advance(bytes: Uint8Array): number {
    const start = this.#offset;
    this.#offset += [...this.#decoder.decode(bytes, { stream: true })].length;
    return start;
  }
}
