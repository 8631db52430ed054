import type { TensorSpec } from "@tritonjs/core";

/*
 * The tensors of a text model: those of vLLM's Triton backend, and after them those of this library. So a client of
 * vLLM in Triton, `generate`, gRPC streams and the OpenAI endpoints all call the same model.
 */

/**
 * Inputs of a text model. A request has `text_input`, or `messages` of a chat.
 *
 * - `sampling_parameters`: a JSON object with the field names of OpenAI and vLLM, such as `max_tokens` and `top_k`.
 *   Without it, the request's parameters of these names are used.
 * - `stream`: true for one response for each piece of text; false for a single response.
 * - `exclude_input_in_output`: without it, a streamed text excludes the prompt, and a single response begins with it.
 * - `messages`, `tools`: JSON arrays, as in `chat/completions` of OpenAI's API.
 */
export const TEXT_INPUTS = [
  { name: "text_input", dtype: "BYTES", shape: [1], optional: true },
  { name: "stream", dtype: "BOOL", shape: [1], optional: true },
  { name: "sampling_parameters", dtype: "BYTES", shape: [1], optional: true },
  { name: "exclude_input_in_output", dtype: "BOOL", shape: [1], optional: true },
  { name: "return_finish_reason", dtype: "BOOL", shape: [1], optional: true },
  { name: "return_logprobs", dtype: "BOOL", shape: [1], optional: true },
  { name: "return_num_input_tokens", dtype: "BOOL", shape: [1], optional: true },
  { name: "return_num_output_tokens", dtype: "BOOL", shape: [1], optional: true },
  { name: "messages", dtype: "BYTES", shape: [1], optional: true },
  { name: "tools", dtype: "BYTES", shape: [1], optional: true },
] as const satisfies readonly TensorSpec[];

/**
 * Outputs of a text model. All but `text_output` are sent when the request asks for them.
 *
 * - `finish_reason`: `stop`, `length` or `tool_calls` in the last response, `null` before.
 * - `logprobs`: a JSON array with an object for each token: from its number to `{ logprob, rank, decoded_token }`, for
 *   the token that was chosen (always the first key) and for the most likely ones. `null` without logprobs.
 * - `num_output_tokens`: the tokens of this response, not their sum.
 * - `tool_calls`: a JSON array of deltas `{ index, id?, type?, function: { name?, arguments? } }`, as chunks of OpenAI
 *   have them, from models that write calls of tools themselves. Empty for a response without any.
 */
export const TEXT_OUTPUTS = [
  { name: "text_output", dtype: "BYTES", shape: [1] },
  { name: "finish_reason", dtype: "BYTES", shape: [1] },
  { name: "logprobs", dtype: "BYTES", shape: [1] },
  { name: "num_input_tokens", dtype: "UINT32", shape: [1] },
  { name: "num_output_tokens", dtype: "UINT32", shape: [1] },
  { name: "tool_calls", dtype: "BYTES", shape: [1] },
] as const satisfies readonly TensorSpec[];
