import { readFile, writeFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { packageFolder } from "./package-folder.js";
import { trainIris } from "./train-iris.js";

const folder = new URL("iris/", packageFolder(import.meta.url));
const modelFile = new URL("iris.onnx", folder);
const model = trainIris(await readFile(new URL("iris.csv", folder), "utf8"));
await writeFile(modelFile, model);
console.log(`wrote ${fileURLToPath(modelFile)} (${model.byteLength} bytes)`);
