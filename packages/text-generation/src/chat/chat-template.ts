import { Environment, Interpreter, Template } from "@huggingface/jinja";
import { TritonError } from "@tritonjs/protocol";
import type { ChatMessage, ChatTool } from "./chat-message.js";
import { strftime } from "./strftime.js";
import { readTemplateFiles, type TemplateFiles } from "./template-files.js";
import { type ArgumentsForm, templateMessages } from "./template-messages.js";
import { detectToolCallFamily, type ToolCallFamily } from "./tool-calls/tool-call-family.js";

/** Input of {@link ChatTemplate.render}. */
export interface ChatTemplateInput {
  /** Messages of the chat, the oldest first. */
  readonly messages: readonly ChatMessage[];
  /** Tools that the model may call. Without any, the template gets none. */
  readonly tools?: readonly ChatTool[] | undefined;
  /** True to end the prompt with the beginning of the assistant's message. */
  readonly addGenerationPrompt: boolean;
  /** Further variables of the template, such as `enable_thinking`. They do not replace the variables above. */
  readonly variables?: Readonly<Record<string, unknown>> | undefined;
}

/** Special tokens that templates print, and the clock. */
export interface ChatTemplateOptions {
  /** Token at the beginning of a prompt, as `bos_token` in templates. @default that of the model's files */
  readonly bosToken?: string;
  /** Token at the end of a text, as `eos_token` in templates. @default that of the model's files */
  readonly eosToken?: string;
  /** Time that `strftime_now` formats. @default the current time */
  readonly now?: () => Date;
}

interface Compiled {
  readonly template: Template;
  readonly file: string;
  readonly form: ArgumentsForm;
}

/**
 * Chat template of a model: turns messages into the prompt that the model was trained on. The prompt has its special
 * tokens spelled out, so it must be encoded without adding any.
 *
 * @example
 * ```ts
 * const template = await ChatTemplate.open("models/story");
 * const prompt = template?.render({ messages: [{ role: "user", content: "Hello" }], addGenerationPrompt: true });
 * ```
 */
export class ChatTemplate {
  /** Form in which the model writes calls of tools; undefined if its template does not mention tools. */
  readonly toolCallFamily: ToolCallFamily | undefined;
  readonly #default: Compiled;
  readonly #toolUse: Compiled;
  readonly #tokens: Readonly<Record<string, string>>;
  readonly #now: () => Date;

  private constructor({ templates, tokens }: TemplateFiles, now: () => Date) {
    const named = (name: string) => templates.find((source) => source.name === name);
    const first = named("default") ?? templates[0];
    if (first === undefined) throw new TritonError("INVALID_ARG", "expected a chat template, got none");
    const toolUse = named("tool_use") ?? first;
    this.toolCallFamily = detectToolCallFamily(toolUse.text);
    this.#default = compile(first.text, first.file);
    this.#toolUse = toolUse === first ? this.#default : compile(toolUse.text, toolUse.file);
    this.#tokens = tokens;
    this.#now = now;
  }

  /**
   * Opens the template in a model's directory: `chat_template` of `tokenizer_config.json`, or `chat_template.jinja` or
   * `chat_template.json` beside it. Undefined if the model has no template.
   *
   * @throws TritonError NOT_FOUND without `tokenizer_config.json`; INVALID_ARG for a file or a template that cannot be
   * read. Both name the file.
   */
  static async open(directory: string, options: ChatTemplateOptions = {}): Promise<ChatTemplate | undefined> {
    const files = await readTemplateFiles(directory);
    if (files.templates.length === 0) return undefined;
    return new ChatTemplate(
      { ...files, tokens: { ...files.tokens, ...tokensOf(options) } },
      clockOf(options),
    );
  }

  /**
   * Makes a template from its text.
   *
   * @throws TritonError INVALID_ARG for a text that is not a template
   */
  static from(text: string, options: ChatTemplateOptions = {}): ChatTemplate {
    const templates = [{ name: "default", text, file: "the given text" }];
    return new ChatTemplate({ templates, tokens: tokensOf(options) }, clockOf(options));
  }

  /**
   * Renders the prompt for messages.
   *
   * @throws TritonError INVALID_ARG if the template rejects the messages, with the template's own message, or fails
   */
  render({ messages, tools, addGenerationPrompt, variables }: ChatTemplateInput): string {
    const hasTools = tools !== undefined && tools.length > 0;
    const { template, file, form } = hasTools ? this.#toolUse : this.#default;
    const values = {
      // Values of transformers for a template that is called without them.
      documents: null,
      ...variables,
      ...this.#tokens,
      ...this.#globals(),
      messages: templateMessages(messages, form),
      tools: hasTools ? withoutUndefined(tools) : null,
      add_generation_prompt: addGenerationPrompt,
    };
    try {
      const environment = new Environment();
      for (const [name, value] of Object.entries(values)) environment.set(name, value);
      return String(new Interpreter(environment).run(template.parsed).value);
    } catch (error) {
      if (error instanceof TemplateRejection) {
        throw new TritonError("INVALID_ARG", `the chat template rejects the messages: ${error.message}`);
      }
      const text = `cannot render the chat template of ${file}: ${(error as Error).message}`;
      throw new TritonError("INVALID_ARG", text, { cause: error });
    }
  }

  #globals(): Record<string, unknown> {
    return {
      true: true,
      True: true,
      false: false,
      False: false,
      none: null,
      None: null,
      range,
      raise_exception: (message: unknown) => {
        throw new TemplateRejection(String(message));
      },
      strftime_now: (format: unknown) => strftime(this.#now(), String(format)),
    };
  }
}

/** Thrown by a template's own `raise_exception`. */
class TemplateRejection extends Error {}

function compile(text: string, file: string): Compiled {
  try {
    return { template: new Template(text), file, form: argumentsForm(text) };
  } catch (error) {
    throw new TritonError(
      "INVALID_ARG",
      `cannot parse the chat template of ${file}: ${(error as Error).message}`,
      {
        cause: error,
      },
    );
  }
}

/** The templates of DeepSeek join the arguments to a text, which fails for an object. */
function argumentsForm(template: string): ArgumentsForm {
  return /\['arguments'\]\s*\+|\.arguments\s*\+/.test(template) ? "text" : "object";
}

/** Python's `range`, for templates. */
function range(start: number, stop?: number, step = 1): number[] {
  const [from, to] = stop === undefined || stop === null ? [0, start] : [start, stop];
  if (step === 0) throw new Error("range() arg 3 must not be zero");
  const values: number[] = [];
  for (let value = from; step > 0 ? value < to : value > to; value += step) values.push(value);
  return values;
}

function tokensOf({ bosToken, eosToken }: ChatTemplateOptions): Record<string, string> {
  return {
    ...(bosToken === undefined ? {} : { bos_token: bosToken }),
    ...(eosToken === undefined ? {} : { eos_token: eosToken }),
  };
}

function clockOf({ now }: ChatTemplateOptions): () => Date {
  return now ?? (() => new Date());
}

/** Returns a copy without undefined members, because a template would treat them as given. */
function withoutUndefined(tools: readonly ChatTool[]): unknown {
  return JSON.parse(JSON.stringify(tools));
}
