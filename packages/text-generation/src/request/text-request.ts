import type { ChatMessage, ChatTool } from "../chat/chat-message.js";
import type { ToolCallFamily } from "../chat/tool-calls/tool-call-family.js";
import type { SamplingParameters } from "../sampling/sampling-parameters.js";
import type { TemplateSettings } from "./template-settings.js";

/** First argument of the callback of {@link textGenerator}: a prompt, or the messages of a chat. */
export interface GeneratorRequest extends TemplateSettings {
  /** The prompt. Undefined for a chat, unless the option `chatTemplate` makes a prompt of it. */
  readonly prompt: string | undefined;
  /** The messages of a chat. Undefined for a plain prompt. */
  readonly messages: readonly ChatMessage[] | undefined;
  /** Tools that the model may call. Undefined without any. */
  readonly tools: readonly ChatTool[] | undefined;
  /** How the client wants the text to be chosen. Undefined members are for the engine to decide. */
  readonly sampling: SamplingParameters;
}

/** Outputs that a request asks for besides `text_output`. */
export interface WantedOutputs {
  readonly finishReason: boolean;
  readonly logprobs: boolean;
  readonly inputTokens: boolean;
  readonly outputTokens: boolean;
  /** True if `tool_calls` is sent even without calls. */
  readonly toolCalls: boolean;
}

/** A request to a text model, with the parts that a callback need not know. */
export interface TextRequest extends GeneratorRequest {
  /** True for one response for each piece of text. */
  readonly stream: boolean;
  /** Text that the single response begins with. */
  readonly prefix: string;
  readonly wanted: WantedOutputs;
  /** Form in which the text has calls of tools; undefined if they stay in it. */
  readonly toolCallFamily?: ToolCallFamily | undefined;
}
