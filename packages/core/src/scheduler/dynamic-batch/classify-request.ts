import { TritonError, toNdArray } from "@tritonjs/protocol";
import type { BatchGrouping } from "../../batch/variable-length.js";
import type { BatchingRequest, BatchKey } from "../../config/options/variable-length-options.js";
import type { PendingRequest } from "../../request/pending-request.js";
import { requestInfo } from "../../request/request-info.js";

/**
 * Calls the model's own functions for the group and the cost of a request, and records the results in the request.
 *
 * @throws TritonError INVALID_ARG for this request alone: if a function throws or returns an invalid value, or the cost
 * exceeds the limit of a batch.
 */
export function classifyRequest(request: PendingRequest, grouping: BatchGrouping): void {
  const { batchBy, cost, maxBatchCost } = grouping;
  const seen = asSeen(request);
  if (batchBy !== undefined) request.batchKey = checkedKey(request, ask(request, "batchBy", batchBy, seen));
  if (cost === undefined) return;
  request.batchCost = checkedCost(request, ask(request, "cost", cost, seen));
  if (maxBatchCost !== undefined && request.batchCost > maxBatchCost) {
    throw refusal(request, "cost", `: expected at most ${maxBatchCost}, got ${request.batchCost}`);
  }
}

function ask<T>(
  request: PendingRequest,
  name: string,
  fn: (seen: BatchingRequest) => T,
  seen: BatchingRequest,
): unknown {
  try {
    return fn(seen);
  } catch (thrown) {
    const why = TritonError.from(thrown).message;
    throw refusal(request, name, ` threw an error: ${why}`, thrown);
  }
}

function checkedKey(request: PendingRequest, key: unknown): BatchKey {
  const known = typeof key === "string" || typeof key === "bigint" || typeof key === "boolean";
  if (known || (typeof key === "number" && !Number.isNaN(key))) return key as BatchKey;
  const got = typeof key === "number" ? "NaN" : typeof key;
  throw refusal(request, "batchBy", `: expected a string, number, bigint or boolean, got ${got}`);
}

function checkedCost(request: PendingRequest, cost: unknown): number {
  if (typeof cost === "number" && Number.isFinite(cost) && cost >= 0) return cost;
  const got = typeof cost === "number" ? cost : typeof cost;
  throw refusal(request, "cost", `: expected a finite number of at least 0, got ${got}`);
}

/** A read-only view of the request; tensors become arrays on first access. */
function asSeen(request: PendingRequest): BatchingRequest {
  const inputs: Record<string, never> = {};
  for (const [name, tensor] of request.inputs) {
    Object.defineProperty(inputs, name, {
      enumerable: true,
      get: () => toNdArray(tensor, "input", name, request.modelName),
    });
  }
  return { ...requestInfo(request), inputs };
}

function refusal(request: PendingRequest, what: string, why: string, cause?: unknown): TritonError {
  return new TritonError("INVALID_ARG", `${request.logPrefix}${what} of model '${request.modelName}'${why}`, {
    reason: "INVALID_INPUT",
    cause,
  });
}
