import type { InferResult } from "../infer/infer-result.js";
import { isRepeatable, withSequenceHeader } from "../infer/sequence-header.js";
import { SharedMemoryCalls } from "./calls/shared-memory-calls.js";
import { compressBody } from "./carrier/compression.js";
import type { ModelCallOptions } from "./client-options.js";
import { type GenerateInputs, type GenerateResponse, generate, generateStream } from "./generate/generate.js";
import { decodeInferResponse, type InferResponse } from "./infer/decode-infer-response.js";
import { encodeInferRequest } from "./infer/encode-infer-request.js";
import type { InferCall } from "./infer/infer-options.js";
import { modelPath } from "./paths.js";

/**
 * A client of any server that speaks the v2 (KServe / Triton) protocol over HTTP, with the calls of Triton's Python
 * client. It runs wherever there is `fetch`.
 *
 * Failed calls reject with a `TritonError`:
 *
 * - with the server's text and the code of its status;
 * - with UNAVAILABLE when the server could not be reached or did not answer in time;
 * - with CANCELLED when `signal` aborted.
 *
 * @example
 * ```ts
 * const client = new InferenceServerClient("localhost:8000");
 * const result = await client.infer("linear", {
 *   inputs: { x: { datatype: "FP32", data: [[1, 2], [3, 4]] } },
 * });
 * result.array("y", "FP32").get(0, 0);
 * ```
 */
export class InferenceServerClient extends SharedMemoryCalls {
  /**
   * Infers with whole tensors: with the batch axis if the model has one. Inputs are read when the call is made: later
   * changes of their arrays have no effect.
   *
   * An inference is retried only if it never left this machine, so that no request runs twice;
   * `retryLostInferences` retries it after a lost connection too.
   *
   * @throws TritonError INVALID_ARG for inputs that cannot be sent, INTERNAL for an invalid answer, and errors that the
   * server answers.
   * @example
   * ```ts
   * const result = await client.infer("classifier", {
   *   inputs: { image: ndarray(pixels, [1, 3, 224, 224]), threshold: Float32Array.of(0.5) },
   *   outputs: [{ name: "scores", classes: 3 }],
   *   signal: AbortSignal.timeout(1000),
   * });
   * result.strings("scores"); // ["0.900000:7:cat", ...]
   * ```
   */
  async infer(modelName: string, call: InferCall): Promise<InferResult<InferResponse>> {
    const path = modelPath(modelName, call.modelVersion, "infer");
    const { body, jsonLength } = encodeInferRequest(call, this.options.binary);
    const headers: Record<string, string> = {
      "content-type": jsonLength === undefined ? "application/json" : "application/octet-stream",
    };
    if (jsonLength !== undefined) headers["inference-header-content-length"] = String(jsonLength);
    const compression = call.requestCompression ?? this.options.requestCompression;
    if (compression !== undefined) headers["content-encoding"] = compression;
    const accepted = call.responseCompression ?? this.options.responseCompression;
    if (accepted !== undefined) headers["accept-encoding"] = accepted;
    const sent = compression === undefined ? body : await compressBody(body, compression);
    const { sequence } = call;
    const answer = await this.calls.request(
      {
        method: "POST",
        path,
        headers,
        body: sent,
        idempotent: isRepeatable(this.options, call),
        balanced: true,
        sequence,
      },
      { ...call, headers: withSequenceHeader(this.options, call) },
    );
    return decodeInferResponse(answer.body, answer.headers);
  }

  /**
   * Inference for text: one flat object in, one out.
   *
   * @throws TritonError as {@link infer}, and UNKNOWN unless the model has exactly one response.
   * @example
   * ```ts
   * const { text } = await client.generate("llm", { prompt: "hello", max_tokens: 16 });
   * ```
   */
  generate(
    modelName: string,
    inputs: GenerateInputs,
    options: ModelCallOptions = {},
  ): Promise<GenerateResponse> {
    return generate(this.calls, modelName, inputs, options);
  }

  /**
   * Inference for text, response by response, for decoupled and other models. Leaving the loop closes the connection,
   * which tells the server to stop. `timeoutMs` limits the time for each response.
   *
   * @throws TritonError as {@link infer}; UNKNOWN for an error of the model after its first response, because the
   * protocol does not send its code.
   * @example
   * ```ts
   * for await (const { token } of client.generateStream("llm", { prompt: "hello" })) show(token);
   * ```
   */
  generateStream(
    modelName: string,
    inputs: GenerateInputs,
    options: ModelCallOptions = {},
  ): AsyncGenerator<GenerateResponse, void, void> {
    return generateStream(this.calls, modelName, inputs, options);
  }

  /** Ends the calls in flight with CANCELLED. Later calls fail with UNAVAILABLE. */
  close(): void {
    this.calls.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.close();
  }
}
