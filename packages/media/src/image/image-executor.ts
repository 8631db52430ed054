import type { ExecutableRequest, Execution, ExecutionResult, Executor } from "@tritonjs/core/backend";
import { ConcurrencyGate, Tensor, TritonError } from "@tritonjs/protocol";
import { filesOf } from "../parameters/bytes-input.js";
import { decodeImage } from "./decode-image.js";
import type { ImagePlan } from "./image-plan.js";
import { importSharp, type SharpModule } from "./import-sharp.js";
import { pixelArray, pixelWriter, type WritePixels } from "./pixel-tables.js";

/** Name of the output with the size before resizing. */
export const ORIGINAL_SIZE = "original_size";

/**
 * Prepares the images of a batch at the same time, as many as the plan allows. `sharp` decodes and resizes on libuv's
 * threads. This thread only brings pixels into the tensor, with a turn of the event loop after each slice.
 */
export class ImageExecutor implements Executor {
  readonly isolation = "inline";
  /** Decoding cannot be interrupted, and reads the memory of its request until it ends. */
  readonly mustFinish = true;
  readonly takesAnyBatchSize = true;
  readonly details = {};
  /** Number of batches at a time, so that the last image of a batch does not leave threads idle. */
  readonly capacity: number;
  readonly #gate: ConcurrencyGate;
  readonly #write: WritePixels;
  #sharp: SharpModule | undefined;

  /** @param hasRows true if tensors have an axis of rows */
  constructor(
    private readonly plan: ImagePlan,
    private readonly hasRows: boolean,
  ) {
    this.capacity = plan.concurrency;
    // Unbounded, because only images of running batches wait here. The model's own queue is bounded.
    this.#gate = new ConcurrencyGate(plan.concurrency, Number.POSITIVE_INFINITY);
    this.#write = pixelWriter(plan);
  }

  async start(): Promise<void> {
    this.#sharp = await importSharp();
  }

  async execute(execution: Execution): Promise<readonly ExecutionResult[]> {
    execution.inputsReady();
    const results = await Promise.all(
      execution.requests.map((request, index) =>
        this.#prepare(request, () => execution.isOpen(index)).catch((error) => TritonError.from(error)),
      ),
    );
    execution.outputsReady();
    return results;
  }

  async stop(): Promise<void> {}

  /** Waits for all images of a request, even after one has failed, because threads still read the others. */
  async #prepare({ inputs }: ExecutableRequest, isOpen: () => boolean): Promise<ExecutionResult> {
    const { inputName, outputName, width, height, channels, layout, dtype } = this.plan;
    const files = filesOf(inputs.get(inputName), inputName, this.hasRows);
    const rows = files.length;
    const values = width * height * channels;
    const pixels = pixelArray(dtype, rows * values);
    const sizes = new Int32Array(2 * rows);
    const settled = await Promise.allSettled(
      files.map((file, row) =>
        this.#gate.run(async () => {
          if (!isOpen()) return;
          const image = await decodeImage(this.#sharp!, this.plan, file, rows === 1 ? undefined : row);
          if (!isOpen()) return;
          if (image.originalSize !== undefined) sizes.set(image.originalSize, 2 * row);
          await this.#write(image.pixels, image.channels, pixels, row * values);
        }, undefined),
      ),
    );
    const failed = settled.find((one) => one.status === "rejected");
    if (failed !== undefined) throw failed.reason;
    const batch = this.hasRows ? [rows] : [];
    const one = layout === "NCHW" ? [channels, height, width] : [height, width, channels];
    const outputs = new Map([[outputName, Tensor.fromElements(dtype, [...batch, ...one], pixels)]]);
    if (this.plan.originalSize)
      outputs.set(ORIGINAL_SIZE, Tensor.fromElements("INT32", [...batch, 2], sizes));
    return outputs;
  }
}
