import { errorFor, type ModelConfig, TritonError } from "@tritonjs/protocol";
import type { ReadyModel } from "@tritonjs/server";
import { type AnswerReader, createAnswerReader } from "../chat/answer-reader.js";
import { ChatTemplate } from "../chat/chat-template.js";
import { TOOL_CALL_FAMILIES, type ToolCallFamily } from "../chat/tool-call-family.js";
import type { ToolCallReaderOptions } from "../chat/tool-call-reader.js";

/** Options of templates, by the name of the model. */
export interface ChatTemplateSettings {
  /** Directories with `tokenizer_config.json`, for models that do not have it in the directory of their version. */
  readonly chatTemplates?: Readonly<Record<string, string>>;
  /** Forms in which models write calls of tools, where the template does not show it. */
  readonly toolCallFamilies?: Readonly<Record<string, ToolCallFamily>>;
  /**
   * Puts the reasoning that a template shows, such as the text in `<think>`, into `reasoning_content`; false to leave
   * it in the content. @default true
   */
  readonly reasoningContent?: boolean;
}

/** The chat templates of the models, opened when they are first used. */
export class ChatTemplates {
  readonly #directories: Readonly<Record<string, string>>;
  readonly #families: Readonly<Record<string, ToolCallFamily>>;
  /** The option of this name. */
  readonly reasoningContent: boolean;
  /** Templates in the directories of models. A reload makes a new configuration, and so reads the files again. */
  readonly #ofModels = new WeakMap<ModelConfig, Promise<ChatTemplate | undefined>>();
  readonly #ofOptions = new Map<string, Promise<ChatTemplate | undefined>>();

  /** @throws TritonError INVALID_ARG for an unknown family */
  constructor({ chatTemplates = {}, toolCallFamilies = {}, reasoningContent = true }: ChatTemplateSettings) {
    for (const [model, family] of Object.entries(toolCallFamilies)) {
      if (TOOL_CALL_FAMILIES.includes(family)) continue;
      const text = `toolCallFamilies of model '${model}': expected one of ${TOOL_CALL_FAMILIES.join(", ")}, got ${family}`;
      throw errorFor("INVALID_OPTION", text);
    }
    this.#directories = chatTemplates;
    this.#families = toolCallFamilies;
    this.reasoningContent = reasoningContent;
  }

  /** True if the options have a template for the model, which then replaces the model's own handling of messages. */
  isChosen(model: string): boolean {
    return Object.hasOwn(this.#directories, model);
  }

  /**
   * The template of a model; undefined if it has none.
   *
   * @throws TritonError INVALID_ARG for a template that cannot be read, INTERNAL if the directory in the options has
   * none
   */
  find({ name, config, directory }: ReadyModel): Promise<ChatTemplate | undefined> {
    if (this.isChosen(name)) {
      const chosen = this.#directories[name]!;
      return kept(this.#ofOptions, name, () => openChosen(chosen, name));
    }
    if (directory === undefined) return Promise.resolve(undefined);
    return kept(this.#ofModels, config, () => openIfPresent(directory, name));
  }

  /** Form in which a model writes calls of tools; undefined if neither the options nor its template say. */
  familyOf(model: string, template: ChatTemplate | undefined): ToolCallFamily | undefined {
    return Object.hasOwn(this.#families, model) ? this.#families[model] : template?.toolCallFamily;
  }

  /** True if the reasoning of a model is kept apart from its content. */
  separatesReasoning(model: string, template: ChatTemplate | undefined): boolean {
    if (!this.reasoningContent) return false;
    return template?.reasoning !== undefined || this.familyOf(model, template) === "harmony";
  }

  /**
   * Makes a reader of an answer; undefined if its text is all content.
   *
   * @param prompt the prompt, or the end of it
   */
  readerOf(
    model: string,
    template: ChatTemplate | undefined,
    tools: ToolCallReaderOptions["tools"],
    prompt: string,
  ): AnswerReader | undefined {
    const family = this.familyOf(model, template);
    const separates = this.separatesReasoning(model, template);
    const reasoning = separates ? template?.reasoning : undefined;
    // The channels of harmony are not content, whether or not the request has tools.
    const reads = tools.length > 0 || (separates && family === "harmony");
    return createAnswerReader({ family: reads ? family : undefined, reasoning, tools, prompt });
  }
}

/** @throws TritonError INTERNAL without a template: the client is not at fault */
async function openChosen(directory: string, model: string): Promise<ChatTemplate> {
  const found = await openIfPresent(directory, model);
  if (found !== undefined) return found;
  const text = `chatTemplates of model '${model}': expected tokenizer_config.json with a chat_template in ${directory}, got none`;
  throw new TritonError("INTERNAL", text);
}

async function openIfPresent(directory: string, modelName: string): Promise<ChatTemplate | undefined> {
  try {
    return await ChatTemplate.open(directory, { modelName });
  } catch (error) {
    if (TritonError.is(error) && error.code === "NOT_FOUND") return undefined;
    throw error;
  }
}

/**
 * Returns the cached value of a key, or makes it. A template that cannot be parsed is not parsed again. Other failures are
 * not cached, so that a file that was missing is read.
 */
function kept<K extends object | string, V>(
  values: {
    get(key: K): Promise<V> | undefined;
    set(key: K, value: Promise<V>): unknown;
    delete(key: K): unknown;
  },
  key: K,
  make: () => Promise<V>,
): Promise<V> {
  let value = values.get(key);
  if (value === undefined) {
    value = make();
    values.set(key, value);
    value.catch(({ cause }: Error) => {
      if (!(cause instanceof Error) || "code" in cause) values.delete(key);
    });
  }
  return value;
}
