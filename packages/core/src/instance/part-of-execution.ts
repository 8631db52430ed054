import type { TritonError } from "@tritonjs/protocol";
import type { BatchLayout } from "../batch/batch-layout.js";
import type { Tensors } from "../batch/merge-inputs.js";
import type { ModelCaller, TensorCaller } from "../callable/model-caller.js";
import type { Clock } from "../clock/clock.js";
import type { CallbackExecution, ExecutableRequest } from "./executor.js";

/** Marks the first and the last part of an execution: the times of the whole are taken there. */
export interface PartPosition {
  readonly first: boolean;
  readonly last: boolean;
}

/** A subset of the requests of an execution, as an execution of its own. */
export class PartOfExecution implements CallbackExecution {
  readonly requests: readonly ExecutableRequest[];

  /**
   * @param indices positions in the whole, in the order of the part
   * @param requests views of these requests; by default those of the whole
   */
  constructor(
    private readonly whole: CallbackExecution,
    private readonly indices: readonly number[],
    private readonly position: PartPosition,
    requests?: readonly ExecutableRequest[],
  ) {
    this.requests = requests ?? indices.map((index) => whole.requests[index]!);
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

  get layout(): BatchLayout | undefined {
    return this.whole.layout;
  }

  get decoupled(): boolean {
    return this.whole.decoupled;
  }

  inputsReady(): void {
    if (this.position.first) this.whole.inputsReady();
  }

  outputsReady(): void {
    if (this.position.last) this.whole.outputsReady();
  }

  isOpen(index: number): boolean {
    return this.whole.isOpen(this.indices[index]!);
  }

  writable(index: number): Promise<void> | undefined {
    return this.whole.writable(this.indices[index]!);
  }

  send(index: number, outputs: Tensors, final?: boolean): void {
    this.whole.send(this.indices[index]!, outputs, final);
  }

  sendError(index: number, error: TritonError, final?: boolean): void {
    this.whole.sendError(this.indices[index]!, error, final);
  }

  finish(index: number): void {
    this.whole.finish(this.indices[index]!);
  }

  reschedule(index: number): void {
    this.whole.reschedule(this.indices[index]!);
  }
}
