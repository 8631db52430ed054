import type { Attributes } from "@opentelemetry/api";
import type { TracedRequest } from "@tritonjs/core/diagnostics";
import type { Tensor } from "@tritonjs/protocol";

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

/**
 * Attributes of one request to a generator: of the JSON object in its input `sampling_parameters` or, without it, of its
 * parameters.
 */
export function generationAttributes({ inputs, parameters = {} }: TracedRequest): Attributes {
  const values = samplingParameters(inputs.get("sampling_parameters")) ?? parameters;
  const attributes: Attributes = {};
  for (const name of OF_PARAMETERS) {
    const value = values[name];
    if (typeof value === "number" || typeof value === "bigint")
      attributes[`gen_ai.request.${name}`] = Number(value);
  }
  return attributes;
}

/** Larger JSON has more than numbers, such as a schema, and reading it twice would cost too much. */
const MOST_BYTES = 16 * 1024;

function samplingParameters(tensor: Tensor | undefined): Readonly<Record<string, unknown>> | undefined {
  const bytes = tensor?.datatype === "BYTES" ? (tensor.elements[0] as Uint8Array | undefined) : undefined;
  if (bytes === undefined || bytes.length > MOST_BYTES) return undefined;
  try {
    const value: unknown = JSON.parse(new TextDecoder().decode(bytes));
    return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : undefined;
  } catch {
    return undefined;
  }
}
