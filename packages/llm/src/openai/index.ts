export type { ChatTemplateSettings } from "./chat-templates.js";
export {
  type OpenAiFetchHandlerOptions,
  type OpenAiOptions,
  type OpenAiPluginOptions,
  openAiFetchHandler,
  openAiPlugin,
  openai,
} from "./openai.js";
export type { ApiKey, HeaderRestriction, OpenAiAccessOptions, OpenAiGroup } from "./openai-access.js";
export type { OpenAiEndpointOptions } from "./openai-handler.js";
