import { join } from "node:path";
import { tensorflow } from "@tritonjs/backends/tensorflow";
import { Triton } from "@tritonjs/core";
import { repository } from "@tritonjs/repository";
import { modelsFolder } from "./models-folder.js";

const KINDS = ["setosa", "versicolor", "virginica"];
const measures = [
  [5.1, 3.5, 1.4, 0.2],
  [6.4, 3.2, 4.5, 1.5],
  [7.7, 2.6, 6.9, 2.3],
];

// Both models of the folder. They need no configuration, because their files declare everything.
await using triton = new Triton({ extensions: [repository({ modelRepository: modelsFolder })] });
await triton.ready();
const { kind } = await triton.infer("flowers-graph", { measures });
for (const [row, flower] of measures.entries()) {
  console.log(`${flower.join(", ")}: ${KINDS[Number(kind!.get(row, 0))]}`);
}

// One of the models again, bound by the program.
const bound = triton.bind({
  modelName: "bound",
  inferFunc: tensorflow({ model: join(modelsFolder, "flowers-layers", "1", "model.json") }),
});
const { inputs, outputs } = bound.metadata();
console.log(
  `from the layers: ${inputs[0]!.name} [${inputs[0]!.shape}], ${outputs[0]!.name} [${outputs[0]!.shape}]`,
);
const { scores } = await triton.infer("bound", { hidden_input: measures });
console.log(`virginica: ${(scores!.get(2, 2) as number) > 0.5}`);
