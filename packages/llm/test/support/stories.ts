import { fileURLToPath } from "node:url";

/** Directory of the small model that writes stories. */
export const STORIES = fileURLToPath(
  new URL("../../../../examples/text-generation/models/stories/1", import.meta.url),
);
