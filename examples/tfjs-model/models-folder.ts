import { fileURLToPath } from "node:url";

/** The model repository: beside the sources, one folder above the compiled files. */
export const modelsFolder = fileURLToPath(new URL("../models", import.meta.url));
