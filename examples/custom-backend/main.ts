import { fileURLToPath } from "node:url";
import { Triton } from "@tritonjs/core";
import { repository } from "@tritonjs/repository";
import { serviceOf } from "@tritonjs/server";
import { forest } from "./tree-backend/index.js";

const KINDS = ["setosa", "versicolor", "virginica"];

await using triton = new Triton({
  extensions: [
    repository({
      modelRepository: fileURLToPath(new URL("../models", import.meta.url)),
      backends: { forest },
    }),
  ],
});

const flowers = [
  [5.1, 3.5, 1.4, 0.2],
  [6.4, 3.2, 4.5, 1.5],
  [5.0, 2.0, 4.9, 1.7],
];
const { votes } = await triton.infer("flowers", { features: flowers });
for (const [row, flower] of flowers.entries()) {
  const shares = KINDS.map((kind, i) => `${kind} ${(votes!.get(row, i) as number).toFixed(2)}`);
  console.log(`${flower.join(", ")}: ${shares.join(", ")}`);
}

const { input, output } = serviceOf(triton).modelConfig("flowers", "");
console.log(`from the file: ${input[0]!.name} [${input[0]!.dims}], ${output[0]!.name} [${output[0]!.dims}]`);
