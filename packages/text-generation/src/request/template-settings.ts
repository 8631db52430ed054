import { invalidParameter, type ParameterFields } from "../sampling/parameter-fields.js";

/** How a request wants its messages to be rendered. */
export interface TemplateSettings {
  /** Further variables of the chat template, such as `enable_thinking`: `chat_template_kwargs` of vLLM. */
  readonly templateVariables: Readonly<Record<string, unknown>> | undefined;
  /** True to end the prompt with the beginning of the answer: `add_generation_prompt`. */
  readonly addGenerationPrompt: boolean;
}

/** @throws TritonError INVALID_ARG for variables that are not an object */
export function readTemplateSettings(fields: ParameterFields): TemplateSettings {
  const name = "chat_template_kwargs";
  const variables = fields.raw(name)?.value;
  if (variables !== undefined && (typeof variables !== "object" || Array.isArray(variables)))
    throw invalidParameter(name, "an object", variables);
  return {
    templateVariables: variables as TemplateSettings["templateVariables"],
    addGenerationPrompt: fields.boolean("add_generation_prompt") ?? true,
  };
}
