import { existsSync } from "node:fs";

/**
 * Returns the folder of a module's package: the nearest folder above it with a `package.json`. Both the sources and the
 * files compiled into `dist/` find data files this way.
 *
 * @param moduleUrl - `import.meta.url` of the module
 * @returns a `file:` URL that ends in `/`
 * @throws Error if no folder above the module has a `package.json`.
 *
 * @example
 * ```ts
 * const csv = new URL("iris/iris.csv", packageFolder(import.meta.url));
 * ```
 */
export function packageFolder(moduleUrl: string): URL {
  for (let folder = new URL(".", moduleUrl); ; folder = new URL("..", folder)) {
    if (existsSync(new URL("package.json", folder))) return folder;
    if (folder.pathname === new URL("..", folder).pathname) {
      throw new Error(`no package.json above ${moduleUrl}`);
    }
  }
}
