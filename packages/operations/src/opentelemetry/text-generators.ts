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

/** Attributes of a request to a generator, from its `sampling_parameters` in JSON, or else from its parameters. */
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

/** Numbers of tokens in a response of a text generator; undefined where the response does not tell them. */
interface TokenCounts {
  readonly input: number | undefined;
  /** Tokens of this response, not of those before it. */
  readonly output: number | undefined;
}

/** Reads the outputs `num_input_tokens` and `num_output_tokens`, which text models send when a request asks for them. */
export function tokenCounts(outputs: ReadonlyMap<string, Tensor>): TokenCounts {
  return {
    input: total(outputs.get("num_input_tokens")),
    output: total(outputs.get("num_output_tokens")),
  };
}

/** The tokens and times of all responses of a text generator to one request. */
export class GeneratedAnswer {
  #input: number | undefined;
  #output: number | undefined;

  /** @param firstMs milliseconds from the acceptance of the request to its first response */
  constructor(private readonly firstMs: number) {}

  take(outputs: ReadonlyMap<string, Tensor>): void {
    const { input, output } = tokenCounts(outputs);
    this.#input = input ?? this.#input;
    if (output !== undefined) this.#output = (this.#output ?? 0) + output;
  }

  get attributes(): Attributes {
    return {
      "gen_ai.response.time_to_first_chunk": this.firstMs / 1000,
      ...(this.#input !== undefined && { "gen_ai.usage.input_tokens": this.#input }),
      ...(this.#output !== undefined && { "gen_ai.usage.output_tokens": this.#output }),
    };
  }
}

/** Sum over the rows of a tensor; undefined for a tensor that is missing or has no numbers. */
function total(tensor: Tensor | undefined): number | undefined {
  if (tensor === undefined || !Object.hasOwn(NUMBERS, tensor.datatype)) return undefined;
  let sum = 0;
  for (const value of tensor.elements as Iterable<number | bigint>) sum += Number(value);
  return sum;
}

/** Data types in which backends give numbers of tokens. */
const NUMBERS = { UINT32: true, UINT64: true, INT32: true, INT64: true };
