import { fileURLToPath } from "node:url";
import { Triton } from "@tritonjs/core";
import { repository } from "@tritonjs/repository";
import { serviceOf } from "@tritonjs/server";

/*
 * A TorchScript file, which a process of Python runs with torch.
 *
 *   npm start
 */

const FLOWERS = [
  [5.1, 3.5, 1.4, 0.2],
  [5.7, 2.8, 4.1, 1.3],
  [6.7, 3.0, 5.2, 2.3],
];

await using triton = new Triton({
  extensions: [
    repository({ modelRepository: fileURLToPath(new URL("../models", import.meta.url)), exitOnError: false }),
  ],
});
await triton.ready();
const [model] = await serviceOf(triton).repositoryIndex(false);
if (model?.state === "READY") {
  const { probabilities__0: probabilities } = await triton.infer("flowers", { measurements: FLOWERS });
  const species = serviceOf(triton).model("flowers", "").labels.get("probabilities__0")!;
  for (const [row, measurements] of FLOWERS.entries()) {
    const shares = species.map((_, i) => probabilities!.get(row, i) as number);
    const most = Math.max(...shares);
    console.log(`${measurements}: ${species[shares.indexOf(most)]} ${most.toFixed(2)}`);
  }
} else {
  console.error(`cannot classify ${FLOWERS.length} flowers: ${model?.reason}`);
  process.exitCode = 1;
}
