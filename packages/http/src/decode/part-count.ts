import { TritonError } from "@tritonjs/protocol";
import { MAX_TENSORS } from "../limits.js";

/** @throws TritonError INVALID_ARG when a request names more tensors than both the limit and the model allow. */
export function checkTensorCount(kind: "inputs" | "outputs", count: number, modelCount: number): void {
  checkCount(kind, count, Math.max(MAX_TENSORS, modelCount));
}

/** @throws TritonError INVALID_ARG when a request has more parts of a kind than the limit. */
export function checkCount(kind: string, count: number, limit: number): void {
  if (count <= limit) return;
  throw new TritonError(
    "INVALID_ARG",
    `request has ${count} ${kind}, which exceeds the maximum allowed number of ${limit}`,
    { reason: "REQUEST_TOO_LARGE" },
  );
}
