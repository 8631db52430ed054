import { batch, type Triton } from "@tritonjs/core";
import { DOUBLE } from "./replicas.js";

/** A model `y = 2 x` without batching of requests, whose executions wait until the test lets them go. */
export class HeldModel {
  /** Batches that have begun, in order. */
  begun = 0;
  cancelled = 0;
  held = true;
  #waiting: (() => void)[] = [];
  #watchers: (() => void)[] = [];

  bind(triton: Triton): void {
    triton.bind({
      ...DOUBLE,
      inferFunc: batch(async ({ x }, { signal }) => {
        this.begun++;
        for (const watcher of this.#watchers.splice(0)) watcher();
        if (this.held) {
          await new Promise<void>((resolve, reject) => {
            this.#waiting.push(resolve);
            signal.addEventListener("abort", () => {
              this.cancelled++;
              reject(signal.reason);
            });
          });
        }
        return { y: x.data.map((value) => 2 * value) };
      }),
      config: { instanceGroup: [{ count: 4 }], maxBatchSize: 1 },
    });
  }

  /** Resolves when the model has begun `count` batches. */
  async untilBegun(count: number): Promise<void> {
    while (this.begun < count) await new Promise<void>((resolve) => this.#watchers.push(resolve));
  }

  /** Lets the batches that wait go, and all later ones. */
  release(): void {
    this.held = false;
    for (const go of this.#waiting.splice(0)) go();
  }
}
