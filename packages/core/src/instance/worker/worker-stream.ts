import type { TritonError } from "@tritonjs/protocol";
import type { Tensors } from "../../batch/merge-inputs.js";
import { type FromWorker, packError, packOutputs } from "./messages.js";
import type { WorkerResponseStream } from "./worker-model.js";

/** Responses of one request in flight to its consumer, before the model has to wait. */
const WINDOW = 16;

interface Line {
  readonly controller: AbortController;
  open: boolean;
  /** Number of responses sent and not yet taken. */
  underWay: number;
  waiting: { readonly promise: Promise<void>; resolve(): void } | undefined;
}

/**
 * The requests of one batch inside a worker: their signals, and the responses of a decoupled model. The number of
 * responses in flight to the main thread is limited by how fast the consumer takes them.
 */
export class WorkerStream implements WorkerResponseStream {
  readonly #lines: readonly Line[];

  constructor(
    private readonly batch: number,
    count: number,
    private readonly post: (message: FromWorker, transfer: ArrayBuffer[]) => void,
  ) {
    this.#lines = Array.from({ length: count }, () => ({
      controller: new AbortController(),
      open: true,
      underWay: 0,
      waiting: undefined,
    }));
  }

  /** True while a request of the batch is open. */
  get live(): boolean {
    return this.#lines.some((line) => line.open);
  }

  signal(index: number): AbortSignal {
    return this.#lines[index]!.controller.signal;
  }

  /** Cancels a request, when the main thread reports it. */
  cancel(index: number): void {
    const line = this.#lines[index]!;
    this.#close(line);
    line.controller.abort();
  }

  /** Counts a response that its consumer has taken. */
  taken(index: number): void {
    const line = this.#lines[index]!;
    line.underWay--;
    if (line.underWay < WINDOW) this.#release(line);
  }

  isOpen(index: number): boolean {
    return this.#lines[index]!.open;
  }

  writable(index: number): Promise<void> | undefined {
    const line = this.#lines[index]!;
    if (!line.open || line.underWay < WINDOW) return undefined;
    if (line.waiting === undefined) {
      let resolve = () => {};
      const promise = new Promise<void>((done) => {
        resolve = done;
      });
      line.waiting = { promise, resolve };
    }
    return line.waiting.promise;
  }

  send(index: number, outputs: Tensors, final = false): void {
    const transfer: ArrayBuffer[] = [];
    this.#post(index, { final, outputs: packOutputs(outputs, transfer, false) }, transfer);
  }

  sendError(index: number, error: TritonError, final = false): void {
    this.#post(index, { final, error: packError(error) }, []);
  }

  finish(index: number): void {
    this.#post(index, { final: true }, []);
  }

  reschedule(index: number): void {
    this.#post(index, { final: true, again: true }, []);
  }

  #post(
    index: number,
    response: Pick<Extract<FromWorker, { type: "response" }>, "final" | "outputs" | "error" | "again">,
    transfer: ArrayBuffer[],
  ): void {
    const line = this.#lines[index]!;
    if (!line.open) return;
    line.underWay++;
    if (response.final) this.#close(line);
    this.post({ type: "response", batch: this.batch, index, ...response }, transfer);
  }

  #close(line: Line): void {
    line.open = false;
    this.#release(line);
  }

  #release(line: Line): void {
    line.waiting?.resolve();
    line.waiting = undefined;
  }
}
