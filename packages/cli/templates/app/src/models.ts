import { onnxruntime } from "@tritonjs/backends/onnxruntime";
import { Triton } from "@tritonjs/core";

const CLASSES = ["small", "medium", "large"];

/** Everything that knows the model. The rest of the application calls `classify`. */
export class Models {
  readonly #triton = new Triton();
  readonly #classifier = this.#triton.bind({
    modelName: "classifier",
    inferFunc: onnxruntime({ model: "models/classifier/1/model.onnx" }),
    config: { maxBatchSize: 32, batcher: { defaultQueuePolicy: { maxQueueSize: 1000 } } },
  });

  /** Resolves when the model can be used, and rejects with the reason if it cannot be loaded. */
  async ready(): Promise<void> {
    await this.#classifier.ready();
  }

  /** @param signal cancels the request, for example when its client has left */
  async classify(features: readonly number[], signal?: AbortSignal): Promise<string> {
    const { probabilities } = await this.#classifier.inferSample({ features: [...features] }, { signal });
    const scores = Array.from(probabilities.data as Float32Array);
    return CLASSES[scores.indexOf(Math.max(...scores))]!;
  }

  /** Answers the requests in flight, and releases the model. */
  async close(): Promise<void> {
    await this.#triton.close();
  }
}
