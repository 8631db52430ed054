export type { OpenAiGroup } from "./access/endpoint-group.js";
export type { ApiKey, HeaderRestriction, OpenAiAccessOptions } from "./access/openai-access.js";
export { type OpenAiOptions, openai } from "./openai.js";
export { type OpenAiFetchHandlerOptions, openAiFetchHandler } from "./openai-fetch-handler.js";
export type { OpenAiEndpointOptions } from "./openai-handler.js";
export { type OpenAiPluginOptions, openAiPlugin } from "./openai-plugin.js";
export type { ChatTemplateSettings } from "./templates/chat-templates.js";
