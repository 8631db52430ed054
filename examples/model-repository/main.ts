import { Triton } from "@tritonjs/core";
import { repository } from "@tritonjs/repository";
import { serviceOf } from "@tritonjs/server";
import { modelsFolder } from "./models-folder.js";

const KINDS = ["setosa", "versicolor", "virginica"];

/** Two flowers: a setosa and a virginica. */
const measures = [
  [5.1, 3.5, 1.4, 0.2],
  [6.3, 3.3, 6.0, 2.5],
];

await using triton = new Triton({
  extensions: [
    repository({ modelRepository: modelsFolder, modelControlMode: "explicit", loadModel: ["flowers"] }),
  ],
});
await triton.ready();
for (const { name, version, state } of await serviceOf(triton).repositoryIndex(false)) {
  console.log(`${name} ${version} ${state}`);
}

const { scores } = await triton.infer("flowers", { measures });
for (const row of measures.keys()) {
  const ofRow = KINDS.map((_, kind) => scores!.get(row, kind) as number);
  console.log(`${measures[row]!.join(", ")}: ${KINDS[ofRow.indexOf(Math.max(...ofRow))]}`);
}

// Load `classify` with a configuration of our own instead of the one on disk.
const small = { backend: "onnxruntime", max_batch_size: 32 };
await triton.loadModel("classify", { config: JSON.stringify(small) });
console.log(`classify takes batches of ${serviceOf(triton).modelConfig("classify", "").maxBatchSize}`);
