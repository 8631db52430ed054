import { sequenceState, Triton } from "@tritonjs/core";
import { grpc } from "@tritonjs/grpc";
import { http } from "@tritonjs/http";

/** A server with a model that adds up the numbers of each sequence. In real life, it is another machine. */
export async function openReplica() {
  const triton = new Triton();
  let sequences = 0;
  const totals = sequenceState(() => {
    sequences++;
    return { sum: 0 };
  });
  triton.bind({
    modelName: "sum",
    inputs: [{ name: "x", dtype: "FP32", shape: [1] }],
    outputs: [{ name: "y", dtype: "FP32", shape: [1] }],
    inferFunc: (requests) =>
      requests.map(({ sequence, inputs: { x } }) => {
        const total = totals(sequence);
        total.sum += x.get(0, 0);
        return { y: [[total.sum]] };
      }),
    // A replica has a place for each of 64 sequences. One that lost its way keeps its place until it is idle too long.
    config: { maxBatchSize: 64, sequence: { maxSequenceIdleMicroseconds: 60_000_000 } },
  });
  const address = "127.0.0.1";
  const { addresses } = await triton.serve({
    frontends: [http({ address, port: 0 }), grpc({ address, port: 0 })],
  });
  return {
    http: `${address}:${addresses.http!.port}`,
    grpc: `${address}:${addresses.grpc!.port}`,
    sequences: () => sequences,
    close: () => triton.close(),
  };
}
