import type { CallbackManagerForLLMRun } from "@langchain/core/callbacks/manager";
import { Embeddings } from "@langchain/core/embeddings";
import type { BaseLanguageModelInput } from "@langchain/core/language_models/base";
import {
  BaseChatModel,
  type BaseChatModelCallOptions,
  type BindToolsInput,
} from "@langchain/core/language_models/chat_models";
import {
  AIMessage,
  AIMessageChunk,
  type BaseMessage,
  isAIMessage,
  isToolMessage,
  type UsageMetadata,
} from "@langchain/core/messages";
import { ChatGenerationChunk, type ChatResult } from "@langchain/core/outputs";
import type { Runnable } from "@langchain/core/runnables";
import { convertToOpenAITool } from "@langchain/core/utils/function_calling";
import { assertOptions, optionTypes } from "@tritonjs/protocol";
import { embedTexts, type InProcessTriton, inProcessFetch, postJson } from "../openai/in-process.js";
import type { OpenAiFetchHandlerOptions } from "../openai/index.js";

/** Options of {@link TritonChatModel}. */
export interface TritonChatModelOptions {
  readonly triton: InProcessTriton;
  /** Name of the model. */
  readonly model: string;
  /** @default the default of the model */
  readonly temperature?: number;
  /** Largest number of tokens of an answer. @default the default of the model */
  readonly maxTokens?: number;
  /** Options as for the OpenAI endpoints: chat templates, families of tool calls. @default none */
  readonly endpoints?: OpenAiFetchHandlerOptions;
}

const CHAT_TYPES = optionTypes<TritonChatModelOptions>({
  triton: "object",
  model: "string",
  temperature: "number",
  maxTokens: "number",
  endpoints: "object",
});

/** Options of one call: the tools, and fields of the chat endpoint. */
export interface TritonCallOptions extends BaseChatModelCallOptions {
  tools?: BindToolsInput[];
  temperature?: number;
  maxTokens?: number;
  /** False for at most one call in an answer. */
  parallel_tool_calls?: boolean;
  /** Structure of the answer, as the chat endpoint takes it. */
  responseFormat?: object;
}

/**
 * A chat model of LangChain over a model of a `Triton`, in process and without a server: with tools, structured output
 * and streams.
 *
 * @throws TritonError INVALID_ARG for an unknown option or a wrong value.
 * @example
 * ```ts
 * const chat = new TritonChatModel({ triton, model: "llama" });
 * const { content } = await chat.invoke("Hello");
 * ```
 */
export class TritonChatModel extends BaseChatModel<TritonCallOptions, AIMessageChunk> {
  readonly model: string;
  readonly #options: TritonChatModelOptions;
  readonly #send: typeof fetch;

  constructor(options: TritonChatModelOptions) {
    super({});
    assertOptions("new TritonChatModel()", options, CHAT_TYPES, {}, ["triton", "model"]);
    this.model = options.model;
    this.#options = options;
    this.#send = inProcessFetch(options.triton, options.endpoints ?? {});
  }

  override _llmType(): string {
    return "tritonjs";
  }

  override bindTools(
    tools: BindToolsInput[],
    options: Partial<TritonCallOptions> = {},
  ): Runnable<BaseLanguageModelInput, AIMessageChunk, TritonCallOptions> {
    return this.withConfig({ ...options, tools });
  }

  override async _generate(messages: BaseMessage[], options: this["ParsedCallOptions"]): Promise<ChatResult> {
    const answer = await postJson(
      this.#send,
      "/chat/completions",
      this.#body(messages, options),
      options.signal,
    );
    const { choices, usage } = (await answer.json()) as ChatAnswer;
    const { message, finish_reason } = choices[0]!;
    const text = message?.content ?? "";
    const usage_metadata = usageOf(usage);
    const calls = (message?.tool_calls ?? []).map(({ id, function: { name, arguments: args } }) => ({
      type: "tool_call" as const,
      id: id ?? "",
      name: name ?? "",
      args: parsedArguments(args),
    }));
    const reply = new AIMessage({
      content: text,
      tool_calls: calls,
      response_metadata: { finish_reason },
      ...(usage_metadata && { usage_metadata }),
    });
    return { generations: [{ text, message: reply }] };
  }

  override async *_streamResponseChunks(
    messages: BaseMessage[],
    options: this["ParsedCallOptions"],
    run?: CallbackManagerForLLMRun,
  ): AsyncGenerator<ChatGenerationChunk> {
    const body = { ...this.#body(messages, options), stream: true, stream_options: { include_usage: true } };
    const answer = await postJson(this.#send, "/chat/completions", body, options.signal);
    for await (const { choices, usage } of eventsOf(answer)) {
      const { delta, finish_reason } = choices[0] ?? {};
      const text = delta?.content ?? "";
      const usage_metadata = usageOf(usage);
      const message = new AIMessageChunk({
        content: text,
        tool_call_chunks: (delta?.tool_calls ?? []).map(
          ({ index, id, function: { name, arguments: args } }) => ({
            type: "tool_call_chunk" as const,
            ...(index !== undefined && { index }),
            ...(id !== undefined && { id }),
            ...(name !== undefined && { name }),
            args,
          }),
        ),
        ...(finish_reason && { response_metadata: { finish_reason } }),
        ...(usage_metadata && { usage_metadata }),
      });
      yield new ChatGenerationChunk({ text, message });
      if (text !== "") await run?.handleLLMNewToken(text);
    }
  }

  #body(messages: readonly BaseMessage[], options: this["ParsedCallOptions"]) {
    const { temperature = this.#options.temperature, maxTokens = this.#options.maxTokens } = options;
    const { tools, tool_choice, parallel_tool_calls, stop, responseFormat } = options;
    return {
      model: this.model,
      messages: messages.map(openAiMessage),
      ...(tools && { tools: tools.map((tool) => convertToOpenAITool(tool as Record<string, unknown>)) }),
      ...(tool_choice !== undefined && { tool_choice: choiceOf(tool_choice) }),
      ...(parallel_tool_calls !== undefined && { parallel_tool_calls }),
      ...(temperature !== undefined && { temperature }),
      ...(maxTokens !== undefined && { max_tokens: maxTokens }),
      ...(stop && { stop }),
      ...(responseFormat && { response_format: responseFormat }),
    };
  }
}

interface ToolCall {
  readonly index?: number;
  readonly id?: string;
  readonly function: { readonly name?: string; readonly arguments: string };
}

interface ChatPart {
  readonly content?: string | null;
  readonly tool_calls?: readonly ToolCall[];
}

interface ChatAnswer {
  readonly choices: readonly {
    readonly message?: ChatPart;
    readonly delta?: ChatPart;
    readonly finish_reason?: string | null;
  }[];
  readonly usage?: { readonly prompt_tokens: number; readonly completion_tokens: number } | null;
}

const ROLES: Readonly<Record<string, string>> = { human: "user", ai: "assistant" };

/** A message as the chat endpoint takes it. */
function openAiMessage(message: BaseMessage): object {
  const { content, type } = message;
  if (isToolMessage(message)) return { role: "tool", content, tool_call_id: message.tool_call_id };
  const calls = isAIMessage(message) ? (message.tool_calls ?? []) : [];
  return {
    role: ROLES[type] ?? type,
    content,
    ...(calls.length > 0 && {
      tool_calls: calls.map(({ id, name, args }) => ({
        id,
        type: "function",
        function: { name, arguments: JSON.stringify(args) },
      })),
    }),
  };
}

/** LangChain also takes the name of a tool, and `any` for "at least one". */
function choiceOf(choice: unknown): unknown {
  if (choice === "any") return "required";
  if (typeof choice !== "string" || ["auto", "none", "required"].includes(choice)) return choice;
  return { type: "function", function: { name: choice } };
}

/** A model may write arguments that are no JSON. They are kept as text. */
function parsedArguments(text: string): Record<string, unknown> {
  try {
    return JSON.parse(text) as Record<string, unknown>;
  } catch {
    return { text };
  }
}

function usageOf(usage: ChatAnswer["usage"]): UsageMetadata | undefined {
  if (!usage) return undefined;
  const { prompt_tokens, completion_tokens } = usage;
  return {
    input_tokens: prompt_tokens,
    output_tokens: completion_tokens,
    total_tokens: prompt_tokens + completion_tokens,
  };
}

/** The events of a stream. */
async function* eventsOf({ body }: Response): AsyncGenerator<ChatAnswer> {
  let rest = "";
  const text = body!.pipeThrough(new TextDecoderStream());
  for await (const piece of text) {
    const lines = (rest + piece).split("\n");
    rest = lines.pop()!;
    for (const line of lines) {
      if (!line.startsWith("data: ") || line === "data: [DONE]") continue;
      const event = JSON.parse(line.slice(6)) as ChatAnswer & { error?: { message: string } };
      if (event.error !== undefined) throw new Error(event.error.message);
      yield event;
    }
  }
}

/** Options of {@link TritonEmbeddings}. */
export interface TritonEmbeddingsOptions {
  readonly triton: InProcessTriton;
  /** Name of the model. */
  readonly model: string;
}

/**
 * Embeddings of LangChain by a model of a `Triton`, in process.
 *
 * @throws TritonError INVALID_ARG for an unknown option or a wrong value.
 * @example
 * ```ts
 * const store = await MemoryVectorStore.fromTexts(texts, [], new TritonEmbeddings({ triton, model: "minilm" }));
 * ```
 */
export class TritonEmbeddings extends Embeddings {
  readonly model: string;
  readonly #triton: InProcessTriton;

  constructor(options: TritonEmbeddingsOptions) {
    super({});
    const types = optionTypes<TritonEmbeddingsOptions>({ triton: "object", model: "string" });
    assertOptions("new TritonEmbeddings()", options, types, {}, ["triton", "model"]);
    this.model = options.model;
    this.#triton = options.triton;
  }

  async embedDocuments(documents: string[]): Promise<number[][]> {
    return (await embedTexts(this.#triton, this.model, documents)).embeddings;
  }

  async embedQuery(document: string): Promise<number[]> {
    return (await this.embedDocuments([document]))[0]!;
  }
}
