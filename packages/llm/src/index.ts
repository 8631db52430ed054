import type { BackendFactory } from "@tritonjs/core/backend";
import { textGenerationBackend } from "./decoder/text-generation.js";
import { llamacppBackend } from "./llamacpp/llama-backend.js";
import { tokenizerRepositoryBackend } from "./tokenizer/tokenizer-backend.js";

export type { ChatMessage, ChatTool } from "./chat/chat-template.js";
export { ChatTemplate } from "./chat/chat-template.js";
export type { TextGenerationOptions } from "./decoder/decoder-settings.js";
export { textGeneration } from "./decoder/text-generation.js";
export { type LlamaCppModel, llamacpp } from "./llamacpp/llama-backend.js";
export type { SamplingParameters } from "./sampling/sampling-parameters.js";
export { StructuredOutput, type TokenConstraint } from "./structured/structured-output.js";
export type {
  TextCallback,
  TextFinishReason,
  TextGenerationContext,
  YieldedPiece,
} from "./text-callback.js";
export {
  type EmbeddingCallback,
  type TextGeneratorOptions,
  textEmbedder,
  textGenerator,
} from "./text-generator.js";
export type { GeneratorRequest } from "./text-request.js";
export { tokenizer } from "./tokenizer/tokenizer-backend.js";
export type { TokenizerOptions } from "./tokenizer/tokenizer-options.js";

/** Backends for models of a repository, by the name in `config.pbtxt`. */
export const repositoryBackends: Readonly<Record<string, BackendFactory>> = {
  text_generation: textGenerationBackend,
  tokenizer: tokenizerRepositoryBackend,
  llamacpp: llamacppBackend,
};
