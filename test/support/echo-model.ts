import { batch, type InferOptions, type ModelHandle, type ModelOptions, type Triton } from "@tritonjs/core";

/** A model that returns its input: `x` INT32 [1] in, `y` INT32 [1] out. */
export const echoInputs = [{ name: "x", dtype: "INT32", shape: [1] }] as const;
export const echoOutputs = [{ name: "y", dtype: "INT32", shape: [1] }] as const;

export type EchoHandle = ModelHandle<typeof echoInputs, typeof echoOutputs>;

/** The callbacks of an echo model; it records its batches, and stops in each batch while it is held. */
export class EchoModel {
  /** Values of each batch, in the order in which the batches began. */
  readonly batches: number[][] = [];
  /** While true, each batch waits until it is released. */
  held = false;
  readonly #waiting: (() => void)[] = [];

  /** One callback of the model; all of them share one record. */
  callback() {
    return batch<typeof echoInputs, typeof echoOutputs>(async ({ x }) => {
      this.batches.push([...x.data]);
      if (this.held) await new Promise<void>((resolve) => this.#waiting.push(resolve));
      return { y: x };
    });
  }

  /** Releases the batch that has been held longest. */
  release(): void {
    this.#waiting.shift()?.();
  }

  /** Releases all batches, including later ones. */
  releaseAll(): void {
    this.held = false;
    for (const resolve of this.#waiting.splice(0)) resolve();
  }

  /** Binds the model and waits until it is loaded. */
  async bind(triton: Triton, config: ModelOptions = {}, instances = 1): Promise<EchoHandle> {
    const handle = triton.bind({
      modelName: "echo",
      inputs: echoInputs,
      outputs: echoOutputs,
      inferFunc: Array.from({ length: instances }, () => this.callback()),
      config,
    });
    await handle.ready();
    return handle;
  }
}

/** Sends one row and returns the row of the answer. */
export async function echo(handle: EchoHandle, value: number, options: InferOptions = {}): Promise<number> {
  const { y } = await handle.inferSample({ x: [value] }, options);
  return y.data[0]!;
}
