import { type BeforeApplicationShutdown, Injectable, type OnModuleInit } from "@nestjs/common";
import { onnxruntime } from "@tritonjs/backends/onnxruntime";
import { Triton } from "@tritonjs/core";

const KINDS = ["setosa", "versicolor", "virginica"];

/** Owns the `Triton` of the application, with a classifier of flowers. */
@Injectable()
export class IrisService implements OnModuleInit, BeforeApplicationShutdown {
  readonly triton = new Triton();
  readonly #iris = this.triton.bind({
    modelName: "iris",
    inferFunc: onnxruntime({ model: new URL("../../quickstart/iris/iris.onnx", import.meta.url) }),
    inputs: [{ name: "measurements", dtype: "FP32", shape: [4] }],
    outputs: [{ name: "species", dtype: "INT64", shape: [1] }],
    config: { maxBatchSize: 64 },
  });

  /** Loads the model. If that fails, the application does not start. */
  async onModuleInit(): Promise<void> {
    await this.#iris.ready();
  }

  /** Drains the models. Nest closes its server after this hook, so answers can still be sent. */
  async beforeApplicationShutdown(): Promise<void> {
    await this.triton.close();
  }

  /**
   * Names the kind of a flower. Concurrent calls share a batch.
   *
   * @param measurements four lengths in centimetres
   * @throws TritonError INVALID_ARG for another number of measurements, CANCELLED when `signal` aborts
   */
  async classify(measurements: number[], signal: AbortSignal): Promise<string> {
    const { species } = await this.#iris.inferSample({ measurements }, { signal });
    return KINDS[Number(species.get(0))]!;
  }
}
