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
export { readConstraintVocabulary } from "./structured/constraint-vocabulary.js";
export type { StructuredFields } from "./structured/response-format.js";
export { StructuredOutput } from "./structured/structured-output.js";
export type { ConstraintVocabulary, TokenConstraint } from "./structured/token-constraint.js";
export { TEXT_INPUTS, TEXT_OUTPUTS } from "./tensors/text-model-tensors.js";
