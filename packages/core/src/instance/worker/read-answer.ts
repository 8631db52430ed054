import { TritonError } from "@tritonjs/protocol";
import { RESCHEDULE } from "../../callable/reschedule.js";
import type { OutputChecker } from "../../response/check-outputs.js";
import type { ExecutableRequest, Execution, ExecutionResult } from "../executor.js";
import { divideOutputs } from "../join-batch.js";
import { totalRows } from "../run-callable.js";
import { type FromWorker, unpackError, unpackOutputs, type WireResult } from "./messages.js";

/** A worker's answer to a batch. */
export type WorkerAnswer = Extract<FromWorker, { type: "merged" | "separate" | "error" | "returned" }>;

/**
 * Reads the results of a batch, one for each request; undefined for a batch that is answered by responses.
 *
 * @throws TritonError if the whole batch failed
 */
export function readAnswer(
  answer: WorkerAnswer,
  execution: Execution,
  checker: OutputChecker,
): readonly ExecutionResult[] | undefined {
  const { requests } = execution;
  switch (answer.type) {
    case "error":
      throw unpackError(answer.error);
    case "returned":
      return undefined;
    case "separate":
      return answer.results.map((one, i) => readSeparate(one, requests[i]!, checker));
    case "merged": {
      const outputs = checker.check(unpackOutputs(answer.outputs), totalRows(requests), [], true);
      return divideOutputs(execution, outputs);
    }
  }
}

function readSeparate(
  result: WireResult,
  request: ExecutableRequest,
  checker: OutputChecker,
): ExecutionResult {
  if (result === "again") return RESCHEDULE;
  if ("code" in result) return unpackError(result);
  try {
    return checker.check(unpackOutputs(result), request.rows, request.requestedOutputs);
  } catch (error) {
    return TritonError.from(error);
  }
}
