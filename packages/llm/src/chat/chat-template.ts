import { readdir, readFile, stat } from "node:fs/promises";
import { basename, join } from "node:path";
import { parse } from "@huggingface/jinja";
import { assertJsonFits, definedMembers, errorFor, TritonError } from "@tritonjs/protocol";
import { allParts, type Parts, turns, type Waiting } from "../turns.js";
import { type ChatContentPart, isImagePart } from "./image-parts.js";
import {
  JoinFault,
  parseExactly,
  printed,
  type ReadSize,
  type TemplateFunction,
  templateValue,
  type Value,
} from "./python-values.js";
import { detectReasoning, type ReasoningForm } from "./reasoning-form.js";
import { countBytes, RenderBudget } from "./render-budget.js";
import { renderInParts, type TemplateNode } from "./template-evaluator.js";
import { templateTokens } from "./template-tokens.js";
import { detectToolCallFamily, type ToolCallFamily } from "./tool-call-family.js";

export type { ChatContentPart } from "./image-parts.js";

/** Input of {@link ChatTemplate.render}. */
interface ChatTemplateInput {
  /** Messages of the chat, the oldest first. */
  readonly messages: readonly ChatMessage[];
  /** Tools that the model may call. Without any, the template gets none. */
  readonly tools?: readonly ChatTool[] | undefined;
  /** True to end the prompt with the beginning of the assistant's message. */
  readonly addGenerationPrompt: boolean;
  /** Further variables of the template, such as `enable_thinking`. They do not replace the variables above. */
  readonly variables?: Readonly<Record<string, unknown>> | undefined;
  /**
   * Text that stands for an image in a prompt, such as `<image>`, for a model that takes images. Without it, messages
   * with images are rejected.
   */
  readonly imageText?: string | undefined;
}

/** Special tokens that templates print, and the clock. */
interface ChatTemplateOptions {
  /** Token at the beginning of a prompt, as `bos_token` in templates. @default that of the model's files */
  readonly bosToken?: string;
  /** Token at the end of a text, as `eos_token` in templates. @default that of the model's files */
  readonly eosToken?: string;
  /** Time that `strftime_now` formats. @default the current time */
  readonly now?: () => Date;
  /** Name of the model, for errors. @default errors name the file alone */
  readonly modelName?: string;
}

interface Compiled {
  readonly program: TemplateNode;
  /** The template in errors: its file and its model. */
  readonly label: string;
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
  /** Form in which the model writes calls of tools; undefined if its template shows none. */
  readonly toolCallFamily: ToolCallFamily | undefined;
  /** Form in which the model writes its reasoning; undefined if its template shows none. */
  readonly reasoning: ReasoningForm | undefined;
  readonly #default: Compiled;
  readonly #toolUse: Compiled;
  /** True if the template goes through the parts of a message. Others print the content as a text. */
  readonly #readsParts: boolean;
  readonly #tokens: Readonly<Record<string, string>>;
  readonly #now: () => Date;

  private constructor(
    { templates, tokens }: TemplateFiles,
    { now = () => new Date(), modelName, ...own }: ChatTemplateOptions,
  ) {
    const named = (name: string) => templates.find((source) => source.name === name);
    const first = named("default") ?? templates[0];
    if (first === undefined) throw new TritonError("INVALID_ARG", "expected a chat template, got none");
    const toolUse = named("tool_use") ?? first;
    const of = modelName === undefined ? "" : ` of model '${modelName}'`;
    this.#default = compile(first.text, first.file + of);
    this.#toolUse = toolUse === first ? this.#default : compile(toolUse.text, toolUse.file + of);
    this.toolCallFamily = detectToolCallFamily(toolUse.text);
    this.reasoning = detectReasoning(toolUse.text);
    this.#readsParts = READS_PARTS.test(first.text);
    this.#tokens = { ...tokens, ...tokensOf(own) };
    this.#now = now;
  }

  /** True if the markers of the reasoning may be special tokens, which models leave out of their text. */
  get hasSpecialReasoning(): boolean {
    return this.reasoning === undefined
      ? this.toolCallFamily === "harmony"
      : !/^<\w*:?think>$/.test(this.reasoning.open);
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
    return new ChatTemplate(files, options);
  }

  /**
   * Makes a template from its text.
   *
   * @throws TritonError INVALID_ARG for a text that is not a template
   */
  static from(text: string, options: ChatTemplateOptions = {}): ChatTemplate {
    const templates = [{ name: "default", text, file: "the given text" }];
    return new ChatTemplate({ templates, tokens: {} }, options);
  }

  /**
   * Renders the prompt for messages. A template may take a number of steps, and bytes for its values, that grows with
   * the messages.
   *
   * @throws TritonError INVALID_ARG if the template rejects the messages, with the template's own message, fails, or
   * takes more steps or bytes
   */
  render(input: ChatTemplateInput): string {
    return allParts(this.#render(input, "object"));
  }

  /**
   * Renders the prompt for messages in turns of the event loop, a few milliseconds in each.
   *
   * @param waiting ends the work when `aborted` becomes true, such as the signal of a request
   * @returns the prompt; a promise if it takes more than this turn
   * @throws TritonError as {@link render}; CANCELLED when `waiting` is over
   */
  renderInTurns(input: ChatTemplateInput, waiting?: Waiting): string | Promise<string> {
    return turns.run(this.#render(input, "object"), waiting);
  }

  *#render(input: ChatTemplateInput, form: ArgumentsForm): Parts<string> {
    const { messages, tools, addGenerationPrompt, variables, imageText } = input;
    const images = imageText === undefined ? undefined : { text: imageText, inParts: this.#readsParts };
    const hasTools = tools !== undefined && tools.length > 0;
    const { program, label } = hasTools ? this.#toolUse : this.#default;
    const size: ReadSize = { values: 0, characters: 0 };
    try {
      const readMessages = yield* templateMessages(messages, form, images, size);
      const readTools = hasTools ? templateValue(withoutUndefined(tools), size) : null;
      const values = {
        // Values of transformers for a template that is called without them.
        documents: null,
        ...valuesOf({ ...variables }, size),
        ...this.#tokens,
        ...this.#globals(),
        messages: readMessages,
        tools: readTools,
        // The name of the tools in SmolLM3.
        ...(hasTools && !Object.hasOwn(variables ?? {}, "xml_tools") && { xml_tools: readTools }),
        add_generation_prompt: addGenerationPrompt,
      };
      return yield* renderInParts(program, values, new RenderBudget(size.values, size.characters));
    } catch (error) {
      if (error instanceof TemplateRejection) {
        throw new TritonError("INVALID_ARG", `the chat template rejects the messages: ${error.message}`);
      }
      // The templates of DeepSeek join the arguments of calls to a text.
      if (error instanceof JoinFault && form === "object" && messages.some((one) => one.tool_calls?.length)) {
        return yield* this.#render(input, "text");
      }
      if (TritonError.is(error)) throw error;
      const text = `cannot render the chat template of ${label}: ${(error as Error).message}`;
      throw errorFor("INVALID_ARG", text, { cause: error });
    }
  }

  #globals(): Record<string, TemplateFunction> {
    return {
      raise_exception: ([message]) => {
        throw new TemplateRejection(printed(message));
      },
      strftime_now: ([format]) => {
        const text = printed(format);
        countBytes(LONGEST_NAME * text.length);
        return strftime(this.#now(), text);
      },
    };
  }
}

function valuesOf(values: Readonly<Record<string, unknown>>, size: ReadSize): Record<string, Value> {
  return Object.fromEntries(
    Object.entries(values).map(([name, value]) => [name, templateValue(value, size)]),
  );
}

class TemplateRejection extends Error {}

/** Characters of a template, several times those of the longest one. */
export const MOST_TEMPLATE = 2 ** 18;

function compile(text: string, label: string): Compiled {
  try {
    if (text.length > MOST_TEMPLATE) {
      throw new RangeError(`expected at most ${MOST_TEMPLATE} characters, got ${text.length}`);
    }
    return { program: parse(templateTokens(text.replace(/\r\n?/g, "\n"))), label };
  } catch (error) {
    throw errorFor("INVALID_ARG", `cannot parse the chat template of ${label}: ${parseFault(error)}`, {
      cause: error,
    });
  }
}

/** Reason why a template cannot be parsed. The parser reads on behind the last token, and calls itself. */
function parseFault(error: unknown): string {
  if (error instanceof TypeError) return "a block or a bracket that does not end";
  const { message } = error as Error;
  return message.startsWith("Maximum call stack")
    ? "expected blocks and expressions that nest less deep"
    : message;
}

function tokensOf({ bosToken: bos_token, eosToken: eos_token }: ChatTemplateOptions): Record<string, string> {
  return definedMembers({ bos_token, eos_token });
}

/** Returns a copy without undefined members, because a template would treat them as given. */
function withoutUndefined(tools: readonly ChatTool[]): unknown {
  return JSON.parse(JSON.stringify(tools));
}

/** Call of a tool in an assistant's message, as in OpenAI's API. */
interface ChatToolCall {
  /** Id to which `tool_call_id` of the answer refers. */
  readonly id?: string;
  readonly type?: "function";
  /** Function that the model called. */
  readonly function: {
    readonly name: string;
    /** Arguments of the call: JSON text, or the object itself. */
    readonly arguments?: string | Readonly<Record<string, unknown>>;
  };
}

/** Message of a chat, as in `chat/completions` of OpenAI's API. */
export interface ChatMessage {
  /** `system`, `developer`, `user`, `assistant` or `tool`; templates may know others. */
  readonly role: string;
  /** Text of the message, or its parts; null or absent for an assistant that only calls tools. */
  readonly content?: string | readonly ChatContentPart[] | null;
  /** Name of the author, for templates that print it. */
  readonly name?: string;
  /** Calls that the assistant made. */
  readonly tool_calls?: readonly ChatToolCall[] | null;
  /** Call that a message of the role `tool` answers. */
  readonly tool_call_id?: string;
}

/** Tool that a model may call, as in OpenAI's API. */
export interface ChatTool {
  readonly type: "function";
  /** Function that the tool is. */
  readonly function: {
    readonly name: string;
    readonly description?: string;
    /** JSON schema of the arguments. */
    readonly parameters?: Readonly<Record<string, unknown>>;
    readonly strict?: boolean | null;
  };
}

/**
 * Messages as a server gives them to a template: an assistant that only calls tools has an empty text. Clients send
 * null, for which many templates fail, and none was trained on the word None.
 */
export function withTexts(messages: readonly ChatMessage[]): readonly ChatMessage[] {
  return messages.map((message) =>
    message.role === "assistant" && (message.content ?? undefined) === undefined
      ? { ...message, content: "" }
      : message,
  );
}

/** A loop through the content of a message, by its name or through a macro's argument. */
const READS_PARTS = /\bfor\s+\w+\s+in\s+(?:(?:\w+\.)*content\b|\w+\[['"]content['"]\])/;

/** How a prompt has images: the text that stands for one, and whether the template writes it. */
interface TemplateImages {
  readonly text: string;
  readonly inParts: boolean;
}

/** Values of messages that are read between two pauses: about a millisecond. */
const VALUES_OF_PART = 2_000;

/** How a template wants the arguments of earlier calls: as objects, or as the JSON text that it joins itself. */
type ArgumentsForm = "object" | "text";

/**
 * Turns messages into the form that templates read: content is text or null, or parts for a model that takes images.
 * Members without a value are absent, and the arguments of earlier calls are objects.
 *
 * @throws TritonError INVALID_ARG for content that is not text, and for arguments that are not a JSON object
 */
function* templateMessages(
  messages: readonly ChatMessage[],
  form: ArgumentsForm,
  images: TemplateImages | undefined,
  size: ReadSize,
): Parts<readonly Value[]> {
  const read: Value[] = [];
  let pauseAt = VALUES_OF_PART;
  for (const [index, message] of messages.entries()) {
    const entry: Record<string, unknown> = {};
    for (const [key, value] of Object.entries(message)) {
      if (value !== undefined && value !== null) entry[key] = value;
    }
    entry.content = images?.inParts
      ? contentParts(message, index)
      : contentText(message, index, images?.text);
    const calls = message.tool_calls ?? [];
    if (calls.length > 0) entry.tool_calls = calls.map((call) => templateCall(call, index, form));
    else delete entry.tool_calls;
    read.push(templateValue(entry, size));
    if (size.values < pauseAt) continue;
    pauseAt = size.values + VALUES_OF_PART;
    yield;
  }
  return read;
}

/** Text of a message. Parts are joined by a line break, as in vLLM. Only an assistant may have none. */
function contentText({ content, role }: ChatMessage, index: number, imageText?: string): string | null {
  if (typeof content === "string") return content;
  if (content === null || content === undefined) return role === "assistant" ? null : "";
  const isText = (part: ChatContentPart) => imageText === undefined || !isImagePart(part);
  // As in vLLM, images come first.
  const images = content.flatMap((part) => (isText(part) ? [] : [imageText!]));
  return [...images, ...content.filter(isText).map((part) => partText(part, index))].join("\n");
}

/** Parts of a message for a template that goes through them. */
function contentParts({ content }: ChatMessage, index: number): readonly Record<string, string>[] {
  const parts = typeof content === "string" ? [{ type: "text", text: content }] : (content ?? []);
  return parts.map(
    (part): Record<string, string> =>
      isImagePart(part) ? { type: "image" } : { type: "text", text: partText(part, index) },
  );
}

function partText(part: ChatContentPart, index: number): string {
  if (part.type === "text" && typeof part.text === "string") return part.text;
  const text = `cannot read the content of messages[${index}]: expected parts of the type "text", got "${part.type}"`;
  throw new TritonError("INVALID_ARG", text);
}

function templateCall(call: ChatToolCall, index: number, form: ArgumentsForm): Record<string, unknown> {
  const given = call.function.arguments;
  const parsed = typeof given === "string" ? parseArguments(given, call.function.name, index) : (given ?? {});
  const text = typeof given === "string" ? given : JSON.stringify(parsed);
  const entry: Record<string, unknown> = {
    type: "function",
    function: { name: call.function.name, arguments: form === "text" ? text : parsed },
  };
  if (call.id !== undefined) entry.id = call.id;
  return entry;
}

function parseArguments(text: string, name: string, index: number): unknown {
  if (text.trim() === "") return {};
  try {
    const parsed = parseExactly(text);
    if (typeof parsed === "object" && parsed !== null && !Array.isArray(parsed)) return parsed;
  } catch {
    // Reported below.
  }
  throw new TritonError(
    "INVALID_ARG",
    `cannot read the arguments of the call of "${name}" in messages[${index}]: expected a JSON object, got ${shortened(text)}`,
  );
}

function shortened(text: string): string {
  return JSON.stringify(text.length > 60 ? `${text.slice(0, 60)}...` : text);
}

const TOKENIZER_CONFIG = "tokenizer_config.json";
/** Directory of named templates, beside `chat_template.jinja`. */
const ADDITIONAL_TEMPLATES = "additional_chat_templates";

/** Template of a name, and the file that it comes from. */
interface TemplateSource {
  /** `default`, or the name of a further template such as `tool_use`. */
  readonly name: string;
  readonly text: string;
  readonly file: string;
}

/** Templates of a model's directory, and the special tokens that they print. */
interface TemplateFiles {
  readonly templates: readonly TemplateSource[];
  readonly tokens: Readonly<Record<string, string>>;
}

/**
 * Reads `tokenizer_config.json`, `chat_template.jinja`, `chat_template.json` and `additional_chat_templates` of a
 * directory. A template in a file of its own replaces the one of the same name in `tokenizer_config.json`, as in
 * transformers.
 *
 * @throws TritonError NOT_FOUND without `tokenizer_config.json`; INVALID_ARG for a file with other content than its
 * name says
 */
async function readTemplateFiles(directory: string): Promise<TemplateFiles> {
  const file = join(directory, TOKENIZER_CONFIG);
  const config = await readJson(file);
  if (config === undefined) {
    throw new TritonError("NOT_FOUND", `cannot read the chat template: expected the file ${file}`);
  }
  const templates = new Map(
    configuredTemplates(config.chat_template, file).map((source) => [source.name, source]),
  );
  for (const source of await templatesInFiles(directory)) templates.set(source.name, source);
  return { templates: [...templates.values()], tokens: specialTokens(config) };
}

/** Templates in `chat_template` of a configuration: a text, or a list of named ones. */
function configuredTemplates(value: unknown, file: string): TemplateSource[] {
  if (value === undefined || value === null) return [];
  if (typeof value === "string") return [{ name: "default", text: value, file }];
  if (!Array.isArray(value))
    throw brokenTemplateFile(file, `"chat_template" to be a string or a list`, typeof value);
  return value.map((entry: unknown) => {
    const { name, template } = (entry ?? {}) as Record<string, unknown>;
    if (typeof name === "string" && typeof template === "string") return { name, text: template, file };
    throw brokenTemplateFile(
      file,
      `entries of "chat_template" with "name" and "template"`,
      JSON.stringify(entry),
    );
  });
}

async function templatesInFiles(directory: string): Promise<TemplateSource[]> {
  const found: TemplateSource[] = [];
  const legacy = join(directory, "chat_template.json");
  const json = await readJson(legacy);
  if (json !== undefined) found.push(...configuredTemplates(json.chat_template, legacy));
  const own = join(directory, "chat_template.jinja");
  const text = await readText(own);
  if (text !== undefined) found.push({ name: "default", text, file: own });
  for (const entry of (await readdir(join(directory, ADDITIONAL_TEMPLATES)).catch(() => [])).sort()) {
    if (!entry.endsWith(".jinja")) continue;
    const further = join(directory, ADDITIONAL_TEMPLATES, entry);
    const named = await readText(further);
    if (named !== undefined) found.push({ name: basename(entry, ".jinja"), text: named, file: further });
  }
  return found;
}

/** Members such as `bos_token`, which are a text or an object with `content`. */
function specialTokens(config: Record<string, unknown>): Record<string, string> {
  const tokens: Record<string, string> = {};
  for (const [key, value] of Object.entries(config)) {
    if (!key.endsWith("_token")) continue;
    const text =
      typeof value === "object" && value !== null ? (value as { content?: unknown }).content : value;
    if (typeof text === "string") tokens[key] = text;
  }
  return tokens;
}

async function readJson(file: string): Promise<Record<string, unknown> | undefined> {
  const text = await readText(file);
  if (text === undefined) return undefined;
  assertJsonFits(text, file);
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw brokenTemplateFile(file, "a JSON object", (error as Error).message);
  }
  if (typeof value === "object" && value !== null && !Array.isArray(value))
    return value as Record<string, unknown>;
  throw brokenTemplateFile(file, "a JSON object", Array.isArray(value) ? "an array" : String(value));
}

/** Bytes of a file beside a model. The largest have some megabytes, most of them of tokens. */
const MOST_BYTES = 2 ** 24;

async function readText(file: string): Promise<string | undefined> {
  try {
    const { size } = await stat(file);
    if (size > MOST_BYTES) throw brokenTemplateFile(file, `at most ${MOST_BYTES} bytes`, String(size));
    return await readFile(file, "utf8");
  } catch (error) {
    if (TritonError.is(error)) throw error;
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw errorFor("INVALID_ARG", `cannot read ${file}: ${(error as Error).message}`, { cause: error });
  }
}

function brokenTemplateFile(file: string, expected: string, got: string): TritonError {
  return new TritonError("INVALID_ARG", `cannot read ${file}: expected ${expected}, got ${got}`);
}

/** Characters of the longest name that a code of two characters becomes, "September" or the date and time. */
const LONGEST_NAME = 10;

const DAYS = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];
const MONTHS = [
  "January",
  "February",
  "March",
  "April",
  "May",
  "June",
  "July",
  "August",
  "September",
  "October",
  "November",
  "December",
];

/** Codes of Python's `strftime` that templates use, in local time and in English whatever the machine's language. */
const STRFTIME_CODES: Record<string, (date: Date) => string> = {
  Y: (date) => String(date.getFullYear()),
  y: (date) => digits(date.getFullYear() % 100),
  m: (date) => digits(date.getMonth() + 1),
  d: (date) => digits(date.getDate()),
  e: (date) => String(date.getDate()).padStart(2),
  j: (date) => digits(dayOfYear(date), 3),
  H: (date) => digits(date.getHours()),
  I: (date) => digits(date.getHours() % 12 || 12),
  M: (date) => digits(date.getMinutes()),
  S: (date) => digits(date.getSeconds()),
  p: (date) => (date.getHours() < 12 ? "AM" : "PM"),
  A: (date) => DAYS[date.getDay()] as string,
  a: (date) => (DAYS[date.getDay()] as string).slice(0, 3),
  B: (date) => MONTHS[date.getMonth()] as string,
  b: (date) => (MONTHS[date.getMonth()] as string).slice(0, 3),
  "%": () => "%",
};

/** Formats a date as Python's `strftime` does. A code that it does not know stays as it is, as in C. */
function strftime(date: Date, format: string): string {
  return format.replace(/%([a-zA-Z%])/g, (text, code: string) => {
    if (code === "F") return strftime(date, "%Y-%m-%d");
    if (code === "T") return strftime(date, "%H:%M:%S");
    return STRFTIME_CODES[code]?.(date) ?? text;
  });
}

function digits(value: number, length = 2): string {
  return String(value).padStart(length, "0");
}

function dayOfYear(date: Date): number {
  const first = Date.UTC(date.getFullYear(), 0, 1);
  return (Date.UTC(date.getFullYear(), date.getMonth(), date.getDate()) - first) / 86_400_000 + 1;
}
