import { InferenceServerClient } from "@tritonjs/client/http";
import { SharedMemoryRegion } from "@tritonjs/server/shared-memory";

/* The client: main.ts starts it in a process of its own. */

const COUNT = 1_000_000;
const BYTES = 4 * COUNT;

const client = new InferenceServerClient(process.env.SERVER_URL!, {
  accessToken: process.env.ACCESS_TOKEN!,
});
// One region: the input first, then room for the output.
using region = await SharedMemoryRegion.create(`/double-${process.pid}`, 2 * BYTES);
await client.registerSystemSharedMemory("tensors", region);
for (const { name, byte_size } of await client.getSystemSharedMemoryStatus())
  console.log(`region '${name}' has ${byte_size} bytes`);

region.write(Float32Array.from({ length: COUNT }, (_, i) => i));
const result = await client.infer("double", {
  inputs: { x: { datatype: "FP32", shape: [COUNT], sharedMemory: { region: "tensors", byteSize: BYTES } } },
  outputs: [{ name: "y", sharedMemory: { region: "tensors", byteSize: BYTES, offset: BYTES } }],
});
const { datatype, shape } = result.sharedMemoryOutputs.get("y")!;
const doubled = region.tensor(datatype, shape, BYTES).elements as Float32Array;
console.log(`${doubled.length} numbers, all doubled: ${doubled.every((value, i) => value === 2 * i)}`);
console.log(`the answer without its tensor: ${JSON.stringify(result.response.json)}`);

await client.unregisterSystemSharedMemory("tensors");
client.close();
