import type { ExecutableRequest, Execution, ExecutionResult, Executor } from "@tritonjs/core/backend";
import { TritonError } from "@tritonjs/protocol";
import { EXPLANATION, type OutputShapes, scoreTensors } from "../scoring/score-tensors.js";
import type { Scorer } from "../scoring/scorer.js";

/** The result of a request that is over. */
const NOTHING: ExecutionResult = new Map();

/**
 * Scores requests on this thread. Between slices of about a millisecond, the event loop takes its turn. The inputs are
 * read where they are: requests are not joined.
 */
export class InlineForestExecutor implements Executor {
  readonly isolation = "inline";
  readonly mustFinish = false;
  readonly takesAnyBatchSize = true;
  readonly details = {};

  constructor(
    private readonly scorer: Scorer,
    private readonly shapes: OutputShapes,
  ) {}

  async start(): Promise<void> {}

  async execute(execution: Execution): Promise<readonly ExecutionResult[]> {
    execution.inputsReady();
    const { requests } = execution;
    const results: ExecutionResult[] = [];
    let rowsInSlice = 0;
    for (const [index, request] of requests.entries()) {
      if (rowsInSlice > 0 && rowsInSlice + request.rows > this.scorer.rowsPerSlice) {
        await nextTurn();
        rowsInSlice = 0;
      }
      rowsInSlice += request.rows;
      const result = execution.isOpen(index) ? this.#score(request) : NOTHING;
      results.push(result instanceof Promise ? await result : result);
    }
    execution.outputsReady();
    return results;
  }

  async stop(): Promise<void> {}

  #score({ inputs, rows, requestedOutputs }: ExecutableRequest): ExecutionResult | Promise<ExecutionResult> {
    const wanted = requestedOutputs.length === 0 || requestedOutputs.includes(EXPLANATION);
    const explains = wanted && this.scorer.plan.explains;
    try {
      return scoreTensors(this.scorer, inputs, rows, this.shapes, explains, nextTurn);
    } catch (error) {
      return TritonError.from(error);
    }
  }
}

/** Resolves after the event loop has handled its waiting events. */
function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
