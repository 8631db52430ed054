import { fileURLToPath } from "node:url";
import { Triton } from "@tritonjs/core";
import { repository } from "@tritonjs/repository";

await using triton = new Triton({
  extensions: [repository({ modelRepository: fileURLToPath(new URL("../models", import.meta.url)) })],
});
await triton.ready();

const lines = ["5.1,3.5,1.4,0.2", "5.5,2.3,3.3,1.0", "7.7,2.6,6.9,2.3"];
const { kind } = await triton.infer("flowers", { line: lines.map((line) => [line]) });
for (const [row, line] of lines.entries()) {
  console.log(`${line}: ${Buffer.from(kind!.get(row, 0) as Uint8Array)}`);
}

try {
  await triton.infer("flowers", { line: [["5.1,3.5,one"]] });
} catch (error) {
  console.log((error as Error).message);
}
// The thread of the model counts, and the server's metrics page shows the count.
console.log((await triton.metrics.getSingleMetricAsString("flowers_read_total")).split("\n").at(-1));
