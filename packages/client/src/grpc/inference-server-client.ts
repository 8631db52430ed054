import { inference } from "@tritonjs/grpc-messages";
import type { InferResult } from "../infer/infer-result.js";
import { isRepeatable, withSequenceHeader } from "../infer/sequence-header.js";
import { SharedMemoryCalls } from "./calls/shared-memory-calls.js";
import { method } from "./carrier/grpc-calls.js";
import { decodeInferResponse, type ResponseMessage } from "./infer/decode-infer-response.js";
import { encodeInferRequest } from "./infer/encode-infer-request.js";
import type { InferCall } from "./infer/infer-options.js";
import {
  type StreamInferOptions,
  type StreamInferResponse,
  type StreamRequests,
  streamInfer,
} from "./infer/stream-infer.js";

const modelInfer = method("ModelInfer", "infers", inference.ModelInferRequest, inference.ModelInferResponse);

/**
 * A client of any server that speaks the v2 (KServe / Triton) protocol over gRPC, with the calls of Triton's Python
 * client.
 *
 * Failed calls reject with a `TritonError`:
 *
 * - with the server's text and the code of its status;
 * - with UNAVAILABLE when the server could not be reached or did not answer in time;
 * - with CANCELLED when `signal` aborted.
 *
 * @example
 * ```ts
 * const client = new InferenceServerClient("localhost:8001");
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
  async infer(modelName: string, call: InferCall): Promise<InferResult<ResponseMessage>> {
    const compression = call.requestCompression ?? this.options.requestCompression;
    const request = encodeInferRequest(modelName, call);
    const idempotent = isRepeatable(this.options, call);
    const headers = withSequenceHeader(this.options, call);
    const answer = await this.calls.unary({ ...modelInfer, idempotent, compression }, request, {
      ...call,
      headers,
    });
    return decodeInferResponse(answer);
  }

  /**
   * Infers over one stream: sends `requests` as they come, and yields responses as they come. A failed request yields a
   * response with `error`, and the stream continues. The stream ends when all requests are answered. Leaving the loop
   * cancels the others.
   *
   * @throws TritonError CANCELLED when `signal` aborts, INVALID_ARG for a request that cannot be sent, and the status
   * with which the server ends the stream.
   * @example
   * ```ts
   * const requests = [{ modelName: "llm", inputs: { prompt: ["hello"] }, enableEmptyFinalResponse: true }];
   * for await (const { result, error, final } of client.streamInfer(requests)) {
   *   if (error) throw error;
   *   if (!final) process.stdout.write(result.strings("text")[0]);
   * }
   * ```
   */
  streamInfer(
    requests: StreamRequests,
    options: StreamInferOptions = {},
  ): AsyncGenerator<StreamInferResponse, void, void> {
    const { requestCompression } = this.options;
    const headers = withSequenceHeader(this.options, options);
    return streamInfer(this.calls, requests, { requestCompression, ...options, headers });
  }
}
