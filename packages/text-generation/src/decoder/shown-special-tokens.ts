import { TOOL_CALL_TOKENS } from "../chat/tool-calls/tool-call-family.js";
import type { TextRequest } from "../request/text-request.js";
import type { SamplingParameters } from "../sampling/sampling-parameters.js";
import type { ShownSpecialTokens } from "../tokenizer/text-stream.js";
import type { OpenDecoder } from "./open-decoder.js";

/**
 * Special tokens in the text of a request: for a chat with tools those around calls, otherwise none unless asked for.
 */
export function shownSpecialTokens(
  { messages, tools }: Pick<TextRequest, "messages" | "tools">,
  { skipSpecialTokens }: SamplingParameters,
  { template, tokenizer }: Pick<OpenDecoder, "template" | "tokenizer">,
): ShownSpecialTokens {
  if (skipSpecialTokens === false) return "all";
  const family = messages !== undefined && tools !== undefined ? template?.toolCallFamily : undefined;
  if (family === undefined) return new Set();
  return new Set(
    TOOL_CALL_TOKENS[family].map((token) => tokenizer.idOf(token)).filter((id) => id !== undefined),
  );
}
