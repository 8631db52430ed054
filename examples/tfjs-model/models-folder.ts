import { fileURLToPath } from "node:url";

/** The repository: beside the sources, one up from what is compiled. */
export const modelsFolder = fileURLToPath(new URL("../models", import.meta.url));
