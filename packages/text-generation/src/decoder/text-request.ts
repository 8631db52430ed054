import type { WorkerBatch } from "@tritonjs/core/backend";
import { type Tensor, TritonError } from "@tritonjs/protocol";
import { readSamplingParameters } from "../sampling/read-sampling-parameters.js";
import type { SamplingParameters } from "../sampling/sampling-parameters.js";

/** A request of a text model, read from its tensors. */
export interface TextRequest {
  /** The prompt, or the messages and tools of a chat. */
  readonly prompt: { readonly text: string } | { readonly messages: unknown; readonly tools: unknown };
  readonly stream: boolean;
  /** True if the first response begins with the prompt. */
  readonly includesPrompt: boolean;
  readonly sampling: SamplingParameters;
  /** Outputs to send besides the text. */
  readonly outputs: ReadonlySet<OptionalOutput>;
}

/** Outputs that a request has to ask for. */
export type OptionalOutput = "finish_reason" | "logprobs" | "num_input_tokens" | "num_output_tokens";

const OPTIONAL_OUTPUTS: readonly OptionalOutput[] = [
  "finish_reason",
  "logprobs",
  "num_input_tokens",
  "num_output_tokens",
];

const utf8 = new TextDecoder("utf-8", { fatal: true });

/**
 * Reads a request.
 *
 * @throws TritonError INVALID_ARG that names the input, what was expected, and what came
 */
export function readTextRequest({ inputs, requests }: Pick<WorkerBatch, "inputs" | "requests">): TextRequest {
  const { parameters, requestedOutputs } = requests[0]!;
  const text = bytesOf(inputs.get("text_input"));
  const messages = bytesOf(inputs.get("messages"));
  if ((text === undefined) === (messages === undefined)) {
    throw invalid("expected either 'text_input' or 'messages'", text === undefined ? "none" : "both");
  }
  const stream = flag(inputs.get("stream")) ?? false;
  const excludes = flag(inputs.get("exclude_input_in_output"));
  if (stream && excludes === false) {
    throw invalid("expected 'exclude_input_in_output' true when streaming", "false");
  }
  const json = bytesOf(inputs.get("sampling_parameters"));
  const sampling = readSamplingParameters({
    json: json === undefined ? undefined : decode("sampling_parameters", json),
    parameters,
  });
  const asked = (name: OptionalOutput) =>
    flag(inputs.get(`return_${name}`)) === true || requestedOutputs.includes(name);
  return {
    prompt:
      text === undefined
        ? { messages: parse("messages", messages!), tools: parse("tools", bytesOf(inputs.get("tools"))) }
        : { text: decode("text_input", text) },
    stream,
    includesPrompt: text !== undefined && !stream && excludes !== true,
    sampling,
    outputs: new Set(OPTIONAL_OUTPUTS.filter(asked)),
  };
}

/** The element of a text input; undefined without the input, and for an empty text of an optional input. */
function bytesOf(tensor: Tensor | undefined): Uint8Array | undefined {
  return (tensor?.elements as readonly Uint8Array[] | undefined)?.[0];
}

function flag(tensor: Tensor | undefined): boolean | undefined {
  const value = (tensor?.elements as Uint8Array | undefined)?.[0];
  return value === undefined ? undefined : value !== 0;
}

function decode(name: string, bytes: Uint8Array): string {
  try {
    return utf8.decode(bytes);
  } catch {
    throw invalid(`expected UTF-8 in '${name}'`, "other bytes");
  }
}

function parse(name: string, bytes: Uint8Array | undefined): unknown {
  if (bytes === undefined) return undefined;
  let value: unknown;
  try {
    value = JSON.parse(decode(name, bytes));
  } catch (error) {
    throw invalid(`expected a JSON array in '${name}'`, (error as Error).message);
  }
  if (Array.isArray(value)) return value;
  throw invalid(`expected a JSON array in '${name}'`, value === null ? "null" : typeof value);
}

function invalid(expected: string, got: string): TritonError {
  return new TritonError("INVALID_ARG", `request for generated text: ${expected}, got ${got}`, {
    reason: "INVALID_INPUT",
  });
}
