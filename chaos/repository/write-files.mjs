import { mkdirSync, renameSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";

/** Writes files by path, each at once: a poll sees the old content or the new one. `a/` is an empty directory. */
export function writeFiles(folder, files) {
  for (const [name, content] of Object.entries(files)) {
    const path = join(folder, name);
    mkdirSync(name.endsWith("/") ? path : dirname(path), { recursive: true });
    if (name.endsWith("/")) continue;
    writeFileSync(`${path}.new`, content);
    renameSync(`${path}.new`, path);
  }
}
