import { InferenceServerClient } from "@tritonjs/client/grpc";
import { sample, Triton } from "@tritonjs/core";
import { grpc } from "@tritonjs/grpc";

/*
 * A client sends requests on one gRPC stream and reads any number of responses to each of them.
 *
 *   npm start
 */

await using triton = new Triton();
let modelEnded: (() => void) | undefined;
triton.bind({
  modelName: "countdown",
  inputs: [{ name: "from", dtype: "INT32", shape: [1] }],
  outputs: [{ name: "left", dtype: "INT32", shape: [1] }],
  inferFunc: sample(async function* ({ from }) {
    const start = from.get(0);
    if (start < 0) throw new RangeError(`expected a number from 0 on, got ${start}`);
    try {
      for (let left = start; left > 0; left--) yield { left: [left] };
    } finally {
      modelEnded?.();
    }
  }),
});
const { addresses } = await triton.serve({ frontends: [grpc({ port: 0 })] });
const client = new InferenceServerClient(addresses.grpc!.url);

const countdown = (from: number) => ({
  modelName: "countdown",
  id: `from ${from}`,
  inputs: { from: Int32Array.of(from) },
  enableEmptyFinalResponse: true,
});

// Three requests on one stream. An error ends its request, and the others go on.
const texts = new Map<string, string[]>();
const requests = [3, -1, 5].map(countdown);
for await (const { id, result, error, final } of client.streamInfer(requests, { endOnError: false })) {
  const text = error?.message ?? (final ? "end" : String(result?.elements("left", "INT32")[0]));
  texts.set(id, [...(texts.get(id) ?? []), text]);
}
for (const { id } of requests) console.log(`${id}: ${texts.get(id)?.join(" ")}`);

// A client that leaves the loop cancels its requests, and the generator of the model ends.
const ended = new Promise<void>((resolve) => {
  modelEnded = resolve;
});
for await (const { result } of client.streamInfer([countdown(1_000_000_000)])) {
  const left = result?.elements("left", "INT32")[0];
  console.log(`${left} left`);
  if (left === 999_999_998) break;
}
await ended;
console.log("the client has left, and the model has ended");
client.close();
