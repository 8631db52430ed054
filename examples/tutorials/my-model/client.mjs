import { parseArgs } from "node:util";
import { ModelClient } from "@tritonjs/client/http";

const { values } = parseArgs({ options: { url: { type: "string", default: "localhost:8000" } } });

const client = new ModelClient(values.url, "MyModel");
const sample = await client.inferSample("the quick brown fox", ["the fox", "a brown dog", "grass"]);
console.log(JSON.stringify(sample.OUTPUT_1));
const rows = await client.inferBatch(
  [["red"], ["blue"]],
  [
    ["red", "blue"],
    ["blue blue", "red blue"],
  ],
);
console.log(JSON.stringify(rows.OUTPUT_1));
await client.inferSample("one tensor of two").catch((error) => console.log(error.message));
await client.close();
