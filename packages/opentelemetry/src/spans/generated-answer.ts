import type { Attributes } from "@opentelemetry/api";
import type { Tensor } from "@tritonjs/protocol";

/** Numbers of tokens in a response of a text generator; undefined where the response does not tell them. */
export interface TokenCounts {
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

/** What a text generator has answered to one request, over all its responses. */
export class GeneratedAnswer {
  #input: number | undefined;
  #output: number | undefined;

  /** @param firstMs milliseconds from the acceptance of the request to its first response */
  constructor(private readonly firstMs: number) {}

  /** Counts a response. */
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
