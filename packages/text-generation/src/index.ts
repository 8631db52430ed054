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
export { TEXT_INPUTS, TEXT_OUTPUTS } from "./tensors/text-model-tensors.js";
