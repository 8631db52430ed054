import { NO_PARAMETERS, type Tensor, TritonError } from "@tritonjs/protocol";
import type { Tensors } from "../../batch/merge-inputs.js";
import type { ModelCaller, TensorCaller } from "../../callable/model-caller.js";
import type { Clock } from "../../clock/clock.js";
import type { ExecutorContext } from "../../instance/backend.js";
import type { ExecutableRequest, Execution, ExecutionResult } from "../../instance/executor.js";
import { divideOutputs, joinInputs } from "../../instance/join-batch.js";
import { RequestView } from "../../instance/request-view.js";
import { totalRows } from "../../instance/run-callable.js";
import { requestInfo } from "../../request/request-info.js";
import { OutputChecker } from "../../response/check-outputs.js";
import type { FoundPython } from "./find-python.js";
import { FoundPythonExecutor } from "./found-python-executor.js";
import type { PythonSettings } from "./python-session.js";

/**
 * Runs a Python program that gets the requests of a batch as one request with all rows, and answers them at once. The
 * inputs are joined and the outputs split here, by the rules of the configuration: ragged inputs, batch inputs and
 * batch outputs among them.
 */
export class MergedBatchExecutor extends FoundPythonExecutor {
  readonly #checker: OutputChecker;

  constructor(
    settings: PythonSettings,
    directory: string,
    context: ExecutorContext,
    find: () => Promise<FoundPython>,
  ) {
    super(settings, directory, { ...context, checker: new UncheckedOutputs(context.info.modelConfig) }, find);
    this.#checker = context.checker;
  }

  override async execute(execution: Execution): Promise<readonly ExecutionResult[]> {
    const results = await super.execute(new MergedExecution(execution, joinInputs(execution)));
    const [outputs] = results ?? [];
    if (TritonError.is(outputs)) throw outputs;
    const rows = totalRows(execution.requests);
    return divideOutputs(execution, this.#checker.check(outputs as Map<string, Tensor>, rows, [], true));
  }
}

/** Leaves the outputs of a whole batch unchecked: they are checked before they are split. */
class UncheckedOutputs extends OutputChecker {
  override check(outputs: Map<string, Tensor>): Map<string, Tensor> {
    return outputs;
  }
}

/** An execution as one request. */
class MergedExecution implements Execution {
  readonly requests: readonly [ExecutableRequest];
  readonly decoupled = false;

  constructor(
    private readonly whole: Execution,
    inputs: Tensors,
  ) {
    const first = whole.requests[0]!;
    const rows = totalRows(whole.requests);
    const info = { ...requestInfo(first), parameters: NO_PARAMETERS, requestedOutputs: [], batchSize: rows };
    this.requests = [new RequestView(info, inputs, rows, first)];
  }

  get signal(): AbortSignal {
    return this.whole.signal;
  }

  get models(): ModelCaller & Partial<TensorCaller> {
    return this.whole.models;
  }

  get clock(): Clock {
    return this.whole.clock;
  }

  inputsReady(): void {
    this.whole.inputsReady();
  }

  outputsReady(): void {
    this.whole.outputsReady();
  }

  postponed(): void {
    this.whole.postponed?.();
  }

  /** The batch runs to its end, whichever requests are cancelled. */
  watch(): void {}

  isOpen(): boolean {
    return true;
  }

  writable(): undefined {
    return undefined;
  }

  send(): void {}

  sendError(): void {}

  finish(): void {}

  reschedule(): void {}
}
