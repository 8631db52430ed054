import { type Shape, TritonError } from "@tritonjs/protocol";

/** The error of outputs whose number of rows differs from that of the batch. */
export function batchSizeError(shapes: ReadonlyMap<string, Shape>, expected: number): TritonError {
  const got = [...shapes].map(
    ([name, shape]) => `${name}: (${shape.join(", ")}${shape.length === 1 ? "," : ""})`,
  );
  return new TritonError(
    "INTERNAL",
    `Received output tensors with different batch sizes: ${got.join(", ")}. Expected batch size: ${expected}. `,
    { reason: "INVALID_OUTPUT" },
  );
}
