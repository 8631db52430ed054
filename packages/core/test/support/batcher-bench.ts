import { type Tensor, type TensorSpec, TritonError } from "@tritonjs/protocol";
import { serviceOf } from "@tritonjs/server";
import { withSchedulerDelay } from "@tritonjs/testing";
import { sendRequest } from "../../../../test/support/send-request.js";
import type { ModelOptions } from "../../src/config/model-options.js";
import type { InferInit, RequestHandle } from "../../src/request/inference-request.js";
import { VirtualClock } from "../../src/system/clock.js";
import { Triton } from "../../src/triton/triton.js";
import { outcomeText } from "./requests.js";
import { ones } from "./tensors.js";

/** Options of a bench; by default the model `m` has batches of up to 4 rows. */
export interface BatcherBenchInit {
  readonly batcher?: ModelOptions["batcher"];
  readonly maxBatchSize?: number;
  readonly inputs?: readonly TensorSpec[];
  readonly instances?: number;
  /** Duration of each batch. */
  readonly execMs?: number;
  readonly delayScheduler?: number;
}

/** Fields of a request besides its id. */
export interface RequestFields extends Partial<Omit<InferInit, "inputs">> {
  readonly rows?: number;
  readonly columns?: number;
  readonly inputs?: Readonly<Record<string, Tensor>>;
}

/** A model with a dynamic batcher that only logs its batches, under a virtual clock. */
export class BatcherBench {
  readonly clock = new VirtualClock();
  readonly triton: Triton;
  /** Ids of the requests of each batch, and its start time: `a b @0`. */
  readonly batches: string[] = [];
  /** `id: outcome @time`, in the order of the answers. */
  readonly outcomes: string[] = [];
  readonly handle;
  execMs: number;

  private constructor(init: BatcherBenchInit) {
    const { clock } = this;
    const delay = { requests: init.delayScheduler ?? 0 };
    this.triton = withSchedulerDelay(delay, () => new Triton({ clock }));
    this.execMs = init.execMs ?? 0;
    const { batcher = {}, maxBatchSize = 4, instances = 1 } = init;
    this.handle = this.triton.bind({
      modelName: "m",
      inputs: init.inputs ?? [{ name: "x", dtype: "FP32", shape: [2] }],
      outputs: [{ name: "y", dtype: "FP32", shape: [1] }],
      inferFunc: Array.from({ length: instances }, () => this.#run),
      config: { batcher, maxBatchSize },
    });
  }

  /** A bench whose model is loaded. */
  static async open(init: BatcherBenchInit = {}): Promise<BatcherBench> {
    const bench = new BatcherBench(init);
    await bench.handle.ready();
    return bench;
  }

  readonly #run = async (requests: readonly { readonly id: string; readonly batchSize: number }[]) => {
    this.batches.push(`${requests.map(({ id }) => id).join(" ")} @${this.clock.now()}`);
    if (this.execMs > 0) {
      await new Promise<void>((resolve) => this.clock.setTimer(this.execMs, resolve));
    }
    return requests.map(({ batchSize }) => ({ y: new Float32Array(batchSize) }));
  };

  /** Sends a request. The outcome of a rejected one is its error, and nothing is returned. */
  send(
    id: string,
    { rows = 1, columns = 2, inputs, ...rest }: RequestFields = {},
  ): RequestHandle | undefined {
    const init = { id, ...rest, inputs: new Map(Object.entries(inputs ?? { x: ones(rows, columns) })) };
    try {
      const model = serviceOf(this.triton).model("m", "");
      return sendRequest(model, init, (outcome) => this.#note(id, outcomeText(outcome)));
    } catch (error) {
      this.#note(id, outcomeText(TritonError.from(error)));
      return undefined;
    }
  }

  /** Sends several requests at once. */
  sendAll(ids: string, init: RequestFields = {}): (RequestHandle | undefined)[] {
    return ids.split(" ").map((id) => this.send(id, init));
  }

  /** Reasons why the batches so far were cut, in order. */
  get cuts(): string[] {
    return this.handle
      .queue()
      .recentCuts.map(({ reason }) => reason)
      .reverse();
  }

  #note(id: string, what: string): void {
    this.outcomes.push(`${id}: ${what} @${this.clock.now()}`);
  }
}
