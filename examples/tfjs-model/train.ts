import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { graphFiles, layersFiles } from "./model-files.js";
import { modelsFolder } from "./models-folder.js";
import { trainFlowers } from "./train-flowers.js";

/* Writes the checked-in models under models/. */

const csv = await readFile(new URL("../../quickstart/iris/iris.csv", import.meta.url), "utf8");
const trained = await trainFlowers(csv);
for (const [name, files] of [
  ["flowers-layers", layersFiles(trained)],
  ["flowers-graph", graphFiles(trained)],
] as const) {
  const folder = join(modelsFolder, name, "1");
  await mkdir(folder, { recursive: true });
  for (const [file, content] of files) await writeFile(join(folder, file), content);
}
