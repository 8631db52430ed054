import { TritonError } from "@tritonjs/protocol";
import type { Execution, ExecutionResult, Executor } from "../instance/backend.js";
import type { ExecutableRequest } from "../request-info.js";

/** Properties of {@link inlineRequests}, and when requests run. */
interface InlineOptions extends Partial<Pick<Executor, "start" | "capacity" | "mustFinish">> {
  /** True to answer the requests of a batch at the same time. @default false, one after another */
  readonly atOnce?: boolean;
  /**
   * Whether the event loop takes a turn before a request.
   *
   * @default true for all but the first request of a batch
   */
  readonly needsTurn?: (request: ExecutableRequest, isFirst: boolean) => boolean;
}

/** An executor that answers each request on this thread by itself. An error fails its own request. */
export function inlineRequests(
  answer: (request: ExecutableRequest, isOpen: () => boolean) => ExecutionResult | Promise<ExecutionResult>,
  { atOnce = false, needsTurn = (_, isFirst) => !isFirst, ...properties }: InlineOptions = {},
): Executor {
  const resultOf = async (execution: Execution, index: number): Promise<ExecutionResult> => {
    const isOpen = () => execution.isOpen(index);
    try {
      return isOpen() ? await answer(execution.requests[index]!, isOpen) : new Map();
    } catch (error) {
      return TritonError.from(error);
    }
  };
  return {
    isolation: "inline",
    mustFinish: false,
    takesAnyBatchSize: true,
    details: {},
    start: async () => {},
    stop: async () => {},
    ...properties,
    execute: async (execution) => {
      execution.inputsReady();
      const results: Promise<ExecutionResult>[] = [];
      for (const [index, request] of execution.requests.entries()) {
        if (!atOnce && needsTurn(request, index === 0)) await nextTurn();
        const result = resultOf(execution, index);
        results.push(result);
        if (!atOnce) await result;
      }
      const settled = await Promise.all(results);
      execution.outputsReady();
      return settled;
    },
  };
}

/** Resolves after the event loop has handled its waiting events. */
export function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
