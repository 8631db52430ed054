import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { Triton } from "@tritonjs/core";
import { optimize } from "@tritonjs/perf";
import { repository } from "@tritonjs/repository";
import { serviceOf } from "@tritonjs/server";

/*
 * The smallest form of a network that writes stories, whose outputs differ by at most 10%, and a server with it.
 *
 *   npm start
 */

const model = fileURLToPath(new URL("../../text-generation/models/stories/1/model.onnx", import.meta.url));
const results = await mkdtemp(join(tmpdir(), "smaller-model-"));

// The command of a shell: tritonjs optimize model.onnx --name stories --goal size --max-error 10 ...
const { variants, choice } = await optimize({
  model,
  name: "stories",
  goal: "size",
  maxError: 0.1,
  variants: ["dynamic-int8", "int4-weights", "fp16-weights"],
  count: 8,
  intervalMs: 30,
  exportPath: results,
});
const original = variants[0]!;
for (const { name, bytes, fault } of variants) {
  const share = `${((100 * bytes) / original.bytes).toFixed(0)}% of the size`;
  console.log(`${name}: ${fault === undefined ? share : `${share}, too far from the original`}`);
}
console.log(`chosen: ${choice?.variant.name}`);

// The folder has the model with its configuration, and samples with its answers.
const triton = new Triton({ extensions: [repository({ modelRepository: join(results, "models") })] });
await triton.ready();
const { data } = JSON.parse(await readFile(join(results, "models", "stories", "samples.json"), "utf8"));
const metadata = serviceOf(triton).modelMetadata("stories", "");
console.log(`stories is served, with ${metadata.inputs.length} inputs and ${data.length} samples`);
await triton.close();
await rm(results, { recursive: true });
