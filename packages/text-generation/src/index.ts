import { textGenerationBackend } from "./decoder/repository-model.js";

export type { ChatContentPart, ChatMessage, ChatTool, ChatToolCall } from "./chat/chat-message.js";
export { ChatTemplate, type ChatTemplateInput, type ChatTemplateOptions } from "./chat/chat-template.js";
export {
  TOOL_CALL_FAMILIES,
  TOOL_CALL_TOKENS,
  type ToolCallFamily,
} from "./chat/tool-calls/tool-call-family.js";
export type { ToolCallDelta, ToolCallPiece } from "./chat/tool-calls/tool-call-piece.js";
export {
  createToolCallReader,
  type ToolCallReader,
  type ToolCallReaderOptions,
} from "./chat/tool-calls/tool-call-reader.js";
export type { DecoderLimits, TextGenerationOptions } from "./decoder/decoder-options.js";
export { textGeneration } from "./decoder/text-generation.js";
export { type EmbeddingCallback, type EmbeddingVector, textEmbedder } from "./embedding/text-embedder.js";
export type { TextGenerationContext } from "./generator/generation-context.js";
export type { TextCallback, YieldedPieces } from "./generator/text-callback.js";
export { type PromptTemplate, type TextGeneratorOptions, textGenerator } from "./generator/text-generator.js";
export type {
  TextFinishReason,
  TokenProbability,
  TokenUsage,
  YieldedLogprob,
  YieldedParts,
  YieldedPiece,
  YieldedToolCall,
} from "./generator/yielded-piece.js";
export type { TemplateSettings } from "./request/template-settings.js";
export type { GeneratorRequest } from "./request/text-request.js";
export { readSamplingParameters, type SamplingSource } from "./sampling/read-sampling-parameters.js";
export type { ResponseFormat, SamplingParameters } from "./sampling/sampling-parameters.js";
export { readConstraintVocabulary } from "./structured/constraint-vocabulary.js";
export { StructuredOutput } from "./structured/structured-output.js";
export type { ConstraintVocabulary, TokenConstraint } from "./structured/token-constraint.js";
export { TEXT_INPUTS, TEXT_OUTPUTS } from "./tensors/text-model-tensors.js";
export { type CertainText, StopTexts } from "./tokenizer/stop-texts.js";
export type { TokenSpelling } from "./tokenizer/token-spelling.js";

/** Backends for models of a repository, by the name in `config.pbtxt`. */
export const repositoryBackends = { text_generation: textGenerationBackend };
