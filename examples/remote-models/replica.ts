import { batch, Triton } from "@tritonjs/core";
import { grpc } from "@tritonjs/grpc";

export interface ReplicaOptions {
  readonly address?: string;
  readonly port?: number;
  /** Runs before each batch. */
  readonly before?: (signal: AbortSignal) => Promise<void>;
}

/** A server with the model. In real life, it is another machine. */
export async function openReplica({ address = "127.0.0.1", port = 0, before }: ReplicaOptions = {}) {
  const triton = new Triton();
  const model = triton.bind({
    modelName: "double",
    inputs: [{ name: "x", dtype: "FP32", shape: [1] }],
    outputs: [{ name: "y", dtype: "FP32", shape: [1] }],
    inferFunc: batch(async ({ x }, { signal }) => {
      await before?.(signal);
      return { y: x.data.map((value) => 2 * value) };
    }),
    config: { maxBatchSize: 4 },
  });
  const { addresses } = await triton.serve({ frontends: [grpc({ address, port })] });
  return {
    url: `grpc://${addresses.grpc!.url}`,
    port: addresses.grpc!.port,
    rows: () => model.statistics().inferenceCount,
    close: () => triton.close(),
  };
}

/** Sends 40 requests at once to the model `double` and counts the right answers. */
export async function rightAnswers(triton: Triton): Promise<number> {
  const values = Array.from({ length: 40 }, (_, i) => i);
  const answers = await Promise.all(values.map((value) => triton.infer("double", { x: [[value]] })));
  return answers.filter(({ y }, i) => y!.get(0, 0) === 2 * i).length;
}
