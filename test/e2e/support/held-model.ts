import type { InferContext, ModelOptions, Triton } from "@tritonjs/core";
import { onTestFinished } from "vitest";
import type { InferCall } from "../../conformance/clients/client.js";

/** A model whose executions wait until they are released or cancelled: `y` is twice `x`. */
export class HeldModel {
  /** Values of `x` in the order of execution. */
  readonly executed: number[] = [];
  /** Signals of the executions, in the same order. */
  readonly signals: AbortSignal[] = [];
  #release!: () => void;
  readonly #released = new Promise<void>((resolve) => {
    this.#release = resolve;
  });
  #listener: (() => void) | undefined;

  constructor(triton: Triton, config: ModelOptions) {
    onTestFinished(() => this.release());
    triton.bind({
      modelName: "held",
      inputs: [{ name: "x", dtype: "INT32", shape: [1] }],
      outputs: [{ name: "y", dtype: "INT32", shape: [1] }],
      inferFunc: async (requests, context) => {
        await this.#hold(
          requests.map(({ inputs }) => inputs.x.data[0]!),
          context,
        );
        return requests.map(({ inputs }) => ({ y: inputs.x.data.map((value) => 2 * value) }));
      },
      config,
    });
  }

  /** Lets all executions continue, including later ones. */
  release(): void {
    this.#release();
  }

  /** Resolves when this many requests have begun to execute. */
  async reached(count: number): Promise<void> {
    while (this.executed.length < count) {
      await new Promise<void>((resolve) => {
        this.#listener = resolve;
      });
    }
  }

  async #hold(values: readonly number[], { signal }: InferContext): Promise<void> {
    this.executed.push(...values);
    this.signals.push(signal);
    this.#listener?.();
    await Promise.race([this.#released, aborted(signal)]);
  }
}

/** Resolves when a signal aborts. */
export function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener("abort", () => resolve(), { once: true });
  });
}

/** A request to the held model; `batched` when it has a batch axis. */
export function heldCall(value: number, batched: boolean, signal?: AbortSignal): InferCall {
  const shape = batched ? [1, 1] : [1];
  return { model: "held", inputs: [{ name: "x", datatype: "INT32", shape, elements: [value] }], signal };
}
