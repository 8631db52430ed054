import { parseArgs } from "node:util";
import { ModelClient } from "@tritonjs/client/http";

const { values } = parseArgs({ options: { url: { type: "string", default: "localhost:8000" } } });

const client = new ModelClient(values.url, "Linear");
const { OUTPUT_1 } = await client.inferBatch([
  [1, 2],
  [3, 4],
]);
console.log(OUTPUT_1.shape, JSON.stringify(OUTPUT_1));
await client.close();
