import { fileURLToPath } from "node:url";

/** Folder of the repository, without a slash at its end. */
export const repositoryRoot = fileURLToPath(new URL("../..", import.meta.url)).replace(/[\\/]$/, "");
