import type { ExecutableRequest, TypedBackend } from "@tritonjs/core/backend";
import { TritonError } from "@tritonjs/protocol";
import type { ChatMessage, ChatTool } from "../chat/chat-message.js";
import type { ToolCallFamily } from "../chat/tool-calls/tool-call-family.js";
import { readTextRequest } from "../request/read-text-request.js";
import type { TextRequest } from "../request/text-request.js";
import { TEXT_INPUTS, TEXT_OUTPUTS } from "../tensors/text-model-tensors.js";
import { GeneratorExecutor } from "./generator-executor.js";
import type { TextCallback } from "./text-callback.js";

/** A template that makes a prompt of a chat. A {@link ChatTemplate} is one. */
export interface PromptTemplate {
  /**
   * @param chat `variables`: further variables, such as `enable_thinking`; `addGenerationPrompt`: true to end the prompt
   * with the beginning of the answer
   */
  render(chat: {
    readonly messages: readonly ChatMessage[];
    readonly tools?: readonly ChatTool[] | undefined;
    readonly variables?: Readonly<Record<string, unknown>> | undefined;
    readonly addGenerationPrompt: boolean;
  }): string;
  /** Form in which the model writes calls of tools. With it, calls in the text are found. */
  readonly toolCallFamily?: ToolCallFamily | undefined;
}

/** Options of {@link textGenerator}. */
export interface TextGeneratorOptions {
  /**
   * Number of requests that an instance generates text for at a time. Others wait in the model's queue.
   * @default 256, as vLLM: engines batch by themselves, and the limit only bounds memory
   */
  readonly concurrency?: number;
  /**
   * Makes the prompt of a chat. The callback then always gets a `prompt`, and for a chat also its `messages`. Calls of
   * tools in the text are found if the template's `toolCallFamily` is known.
   * @default none: the callback gets `messages` or a `prompt`
   */
  readonly chatTemplate?: PromptTemplate;
}

const DEFAULT_CONCURRENCY = 256;

/**
 * Makes a model of a function that generates text. The function generates it itself, or calls an engine or a server.
 * The model has the inputs and outputs of vLLM's Triton backend, with those for chats ({@link TEXT_INPUTS},
 * {@link TEXT_OUTPUTS}). `generate`, `generate_stream`, gRPC streams and the OpenAI endpoints all call it.
 *
 * The model does the following, so the callback need not do it:
 *
 * - **Streams.** A request with `stream` gets a response for each piece, as fast as the client reads. Any other request
 *   gets one response with the whole text.
 * - **Stop texts.** `sampling.stop` ends the text, also across pieces.
 * - **Limits.** `sampling.maxTokens` ends the text at that number of tokens. A piece counts as one token unless it
 *   says `tokens`. A callback that passes the limit on to its engine generates nothing in vain.
 * - **Cancellation.** When the client leaves or the time is over, `context.signal` is aborted and `return()` of the
 *   generator runs, so its `finally` blocks do.
 *
 * An error before the first piece answers the request with its status. A later error ends the stream with an error
 * response. The queue of the model comes from `config.batcher` of `bind`: priorities, size limits, time limits.
 *
 * @throws TritonError INVALID_ARG for wrong options.
 * @example
 * ```ts
 * const handle = triton.bind({
 *   modelName: "parrot",
 *   inferFunc: textGenerator(async function* ({ messages, prompt, sampling }, { signal }) {
 *     const words = (prompt ?? String(messages?.at(-1)?.content)).split(" ");
 *     for (const word of words.slice(0, sampling.maxTokens)) {
 *       if (signal.aborted) return;
 *       yield `${word} `;
 *     }
 *     yield { usage: { promptTokens: words.length } };
 *   }),
 * });
 * for await (const { text_output } of handle.stream({ text_input: ["hello you"], stream: [true] })) {
 *   process.stdout.write(text_output.text());
 * }
 * ```
 */
export function textGenerator(
  callback: TextCallback,
  options: TextGeneratorOptions = {},
): TypedBackend<typeof TEXT_INPUTS, typeof TEXT_OUTPUTS> {
  const { concurrency = DEFAULT_CONCURRENCY, chatTemplate } = options;
  checkOptions(callback, options);
  const read = chatTemplate === undefined ? readTextRequest : readWithTemplate(chatTemplate);
  return {
    backendName: "javascript",
    platform: "",
    describe: () => ({ inputs: TEXT_INPUTS, outputs: TEXT_OUTPUTS, maxBatchSize: 0, decoupled: true }),
    createExecutor: (context) => new GeneratorExecutor(callback, read, context, concurrency),
  };
}

function checkOptions(callback: unknown, options: TextGeneratorOptions): void {
  if (typeof callback !== "function") {
    throw invalidOption(`callback: expected a function, got ${typeof callback}`);
  }
  const unknown = Object.keys(options).find((name) => name !== "concurrency" && name !== "chatTemplate");
  if (unknown !== undefined) {
    throw invalidOption(`unknown option '${unknown}': expected concurrency or chatTemplate`);
  }
  const { concurrency = DEFAULT_CONCURRENCY, chatTemplate } = options;
  if (!(Number.isSafeInteger(concurrency) || concurrency === Number.POSITIVE_INFINITY) || concurrency < 1) {
    throw invalidOption(`concurrency: expected an integer of at least 1, got ${concurrency}`);
  }
  if (chatTemplate !== undefined && typeof chatTemplate?.render !== "function") {
    throw invalidOption("chatTemplate: expected an object with render(), such as a ChatTemplate");
  }
}

function invalidOption(message: string): TritonError {
  return new TritonError("INVALID_ARG", `textGenerator(): ${message}`, { reason: "INVALID_OPTION" });
}

function readWithTemplate(template: PromptTemplate) {
  return (request: ExecutableRequest, modelName: string): TextRequest => {
    const read = readTextRequest(request, modelName);
    const { messages, tools, templateVariables: variables, addGenerationPrompt } = read;
    if (messages === undefined) return read;
    const prompt = template.render({ messages, tools, variables, addGenerationPrompt });
    return { ...read, prompt, toolCallFamily: template.toolCallFamily };
  };
}
