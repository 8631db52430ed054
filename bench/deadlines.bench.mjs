/*
 * How much load does a model take whose classes of requests have limits of their own, and what is left in overload?
 * Simulates the batcher and the policies of four papers under a virtual clock, so the figures are the same on every
 * machine. How much sooner are texts complete when short ones go first? Simulates the engine of the decoder. Writes the
 * tables of docs/deadlines.md.
 */
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { build } from "rolldown";
import { root } from "../scripts/run.mjs";

async function load(name) {
  const file = join(root, "node_modules", ".simulation", `${name}.mjs`);
  await build({
    input: join(root, "test", "simulation", `${name}.ts`),
    platform: "node",
    // Only the package of the decoder has it.
    external: (id) => /^[^.#/]/.test(id) && id !== "@huggingface/tokenizers",
    resolve: { extensionAlias: { ".js": [".ts", ".js"] } },
    output: { file },
  });
  return import(pathToFileURL(file).href);
}

const progress = (text) => console.error(text);
const { writeDeadlineReport } = await load("deadline-report");
console.log(`\n${await writeDeadlineReport(root, progress)}`);
process.exit(0);
