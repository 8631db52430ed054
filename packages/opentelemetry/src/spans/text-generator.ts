import type { Attributes } from "@opentelemetry/api";
import type { Parameters } from "@tritonjs/protocol";

/** How a model that generates text is described, by the semantic conventions for generative AI. */
export interface TextGenerator {
  /** `gen_ai.operation.name`. @default "text_completion" */
  readonly operation?: "chat" | "text_completion" | "generate_content" | "embeddings" | (string & {});
  /** `gen_ai.provider.name`. @default "tritonjs" */
  readonly provider?: string;
}

/** Text generators by the names of their models. */
export type TextGenerators = Readonly<Record<string, TextGenerator>>;

/** Attributes made of the parameters of a request, which have the same names without the prefix. */
const OF_PARAMETERS = [
  "max_tokens",
  "temperature",
  "top_p",
  "top_k",
  "frequency_penalty",
  "presence_penalty",
  "seed",
] as const;

export function operationOf({ operation = "text_completion" }: TextGenerator): string {
  return operation;
}

/** Attributes of a generator's spans and metrics. */
export function generatorAttributes(modelName: string, generator: TextGenerator): Attributes {
  return {
    "gen_ai.operation.name": operationOf(generator),
    "gen_ai.provider.name": generator.provider ?? "tritonjs",
    "gen_ai.request.model": modelName,
    "gen_ai.response.model": modelName,
  };
}

/** Attributes of one request to a generator. */
export function generationAttributes(parameters: Parameters): Attributes {
  const attributes: Attributes = {};
  for (const name of OF_PARAMETERS) {
    const value = parameters[name];
    if (typeof value === "number" || typeof value === "bigint")
      attributes[`gen_ai.request.${name}`] = Number(value);
  }
  return attributes;
}
