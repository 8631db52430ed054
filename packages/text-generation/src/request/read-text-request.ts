import { type Parameters, type Tensor, TritonError } from "@tritonjs/protocol";
import { openFields, samplingParametersOf } from "../sampling/read-sampling-parameters.js";
import { parseMessages, parseTools } from "./chat-request.js";
import { readTemplateSettings } from "./template-settings.js";
import type { TextRequest, WantedOutputs } from "./text-request.js";

/** A request as its tensors, on the server's thread or in a worker. */
export interface TextRequestSource {
  readonly inputs: ReadonlyMap<string, Tensor>;
  readonly parameters: Parameters;
  readonly requestedOutputs: readonly string[];
}

/** Text of the vLLM backend. */
const PREFIX_IN_STREAM =
  "Error generating stream: When streaming, `exclude_input_in_output` = False is not allowed.";

/**
 * Reads a request to a text model.
 *
 * @throws TritonError INVALID_ARG that names the input, the expected and the given value.
 */
export function readTextRequest(request: TextRequestSource, modelName: string): TextRequest {
  const inputs = new TextInputs(request);
  const prompt = inputs.text("text_input");
  const chat = inputs.text("messages");
  if ((prompt === undefined) === (chat === undefined)) {
    const got = prompt === undefined ? "none of them" : "both";
    throw invalid(`model '${modelName}': expected one of the inputs 'text_input' and 'messages', got ${got}`);
  }
  const tools = inputs.text("tools");
  const stream = inputs.flag("stream") ?? false;
  const excludePrompt = inputs.flag("exclude_input_in_output");
  if (stream && excludePrompt === false) throw invalid(PREFIX_IN_STREAM);
  const { parameters } = request;
  const fields = openFields({ json: inputs.text("sampling_parameters"), parameters });
  return {
    prompt,
    messages: chat === undefined ? undefined : parseMessages(chat),
    tools: tools === undefined ? undefined : parseTools(tools),
    sampling: samplingParametersOf(fields),
    ...readTemplateSettings(fields),
    stream,
    prefix: stream || excludePrompt === true ? "" : (prompt ?? ""),
    wanted: wantedOutputs(inputs, request.requestedOutputs),
  };
}

function wantedOutputs(inputs: TextInputs, requested: readonly string[]): WantedOutputs {
  const wants = (output: string) => inputs.flag(`return_${output}`) === true || requested.includes(output);
  return {
    finishReason: wants("finish_reason"),
    logprobs: wants("logprobs"),
    inputTokens: wants("num_input_tokens"),
    outputTokens: wants("num_output_tokens"),
    toolCalls: requested.includes("tool_calls"),
  };
}

/** The single elements of a request's inputs. */
class TextInputs {
  readonly #inputs: TextRequestSource["inputs"];

  constructor({ inputs }: TextRequestSource) {
    this.#inputs = inputs;
  }

  text(name: string): string | undefined {
    const element = this.#inputs.get(name)?.elements[0];
    if (element === undefined) return undefined;
    try {
      return new TextDecoder("utf-8", { fatal: true }).decode(element as Uint8Array);
    } catch (cause) {
      throw invalid(`input '${name}': expected text in UTF-8, got other bytes`, cause);
    }
  }

  flag(name: string): boolean | undefined {
    const element = this.#inputs.get(name)?.elements[0];
    return element === undefined ? undefined : Boolean(element);
  }
}

function invalid(message: string, cause?: unknown): TritonError {
  return new TritonError("INVALID_ARG", message, { reason: "INVALID_INPUT", cause });
}
