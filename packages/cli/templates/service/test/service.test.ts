import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { InferenceServerClient } from "@tritonjs/client/http";
import { createService } from "../src/service.js";

const triton = createService({ httpPort: 0, grpcPort: 0, metricsPort: 0 });
let client: InferenceServerClient;
before(async () => {
  const { addresses } = await triton.serve();
  client = new InferenceServerClient(addresses.http!.url);
});
after(async () => {
  client.close();
  await triton.close();
});

test("the service is ready", async () => {
  assert.equal(await client.isServerReady(), true);
});

test("a client gets the norm of each row", async () => {
  const x = {
    datatype: "FP32",
    data: [
      [3, 4],
      [6, 8],
    ],
  } as const;
  const result = await client.infer("norm", { inputs: { x } });
  assert.deepEqual([...result.elements("norm", "FP32")], [5, 10]);
});

test("a client gets the answer of the model file", async () => {
  const features = { datatype: "FP32", data: [[5, 3, 1, 0]] } as const;
  const result = await client.infer("classifier", { inputs: { features } });
  assert.equal(result.elements("probabilities", "FP32").length, 3);
});
