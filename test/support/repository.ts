import { fileURLToPath } from "node:url";

/** Folder of the repository, without a final slash. */
export const repositoryRoot = fileURLToPath(new URL("../..", import.meta.url)).replace(/[\\/]$/, "");
