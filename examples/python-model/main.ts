import { fileURLToPath } from "node:url";
import { Triton, TritonError } from "@tritonjs/core";
import { repository } from "@tritonjs/repository";

await using triton = new Triton({
  extensions: [repository({ modelRepository: fileURLToPath(new URL("../models", import.meta.url)) })],
});

const { y } = await triton.infer("normalize", { x: [[1, 2, 3]] });
console.log([0, 1, 2].map((i) => (y!.get(0, i) as number).toFixed(3)).join(" "));

await triton
  .infer("normalize", { x: [[5, 5]] })
  .catch((error) => console.log(TritonError.from(error).message));
