import { join } from "node:path";
import { fileURLToPath } from "node:url";

/** The model repository: beside the sources, one folder above the compiled files. */
export const modelsFolder = fileURLToPath(new URL("../models", import.meta.url));

/** The ONNX file of a model's first version. */
export function modelFile(name: string): string {
  return join(modelsFolder, name, "1", "model.onnx");
}
