import { join } from "node:path";
import { fileURLToPath } from "node:url";

/** The repository: beside the sources, one up from what is compiled. */
export const modelsFolder = fileURLToPath(new URL("../models", import.meta.url));

/** The ONNX file of a model's first version. */
export function modelFile(name: string): string {
  return join(modelsFolder, name, "1", "model.onnx");
}
