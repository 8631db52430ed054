import { textGenerationBackend } from "./decoder/text-generation.js";

export type { DecoderDtype } from "@tritonjs/protocol";
export type { ChatContentPart, ChatMessage, ChatTool, ChatToolCall } from "./chat/chat-template.js";
export { ChatTemplate, type ChatTemplateInput, type ChatTemplateOptions } from "./chat/chat-template.js";
export type { ToolChoice } from "./chat/forced-calls.js";
export { TOOL_CALL_FAMILIES, TOOL_CALL_TOKENS, type ToolCallFamily } from "./chat/tool-call-family.js";
export type { ToolCallDelta, ToolCallPiece } from "./chat/tool-call-pieces.js";
export {
  createToolCallReader,
  type ToolCallReader,
  type ToolCallReaderOptions,
} from "./chat/tool-call-reader.js";
export type { DecoderLimits, TextGenerationOptions } from "./decoder/decoder-settings.js";
export { textGeneration } from "./decoder/text-generation.js";
export type { ResponseFormat, SamplingParameters } from "./sampling/sampling-parameters.js";
export { readSamplingParameters, type SamplingSource } from "./sampling/sampling-parameters.js";
export { type ConstraintVocabulary, readConstraintVocabulary } from "./structured/constraint-vocabulary.js";
export { StructuredOutput, type TokenConstraint } from "./structured/structured-output.js";
export { type CertainText, StopTexts } from "./text-answer.js";
export type {
  TextCallback,
  TextFinishReason,
  TextGenerationContext,
  TokenProbability,
  TokenUsage,
  YieldedLogprob,
  YieldedParts,
  YieldedPiece,
  YieldedPieces,
  YieldedToolCall,
} from "./text-callback.js";
export {
  type EmbeddingCallback,
  type EmbeddingVector,
  type PromptTemplate,
  type TextGeneratorOptions,
  textEmbedder,
  textGenerator,
} from "./text-generator.js";
export type { GeneratorRequest, TemplateSettings } from "./text-request.js";
export { TEXT_INPUTS, TEXT_OUTPUTS } from "./text-request.js";
export type { TokenSpelling } from "./token-spelling.js";

/** Backends for models of a repository, by the name in `config.pbtxt`. */
export const repositoryBackends = { text_generation: textGenerationBackend };
