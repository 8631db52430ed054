import { writeFile } from "node:fs/promises";
import { classifyModel, normalizeModel } from "./flower-models.js";
import { modelFile } from "./models-folder.js";

await writeFile(modelFile("normalize"), normalizeModel());
await writeFile(modelFile("classify"), classifyModel());
console.log("wrote the ONNX models of normalize and classify");
