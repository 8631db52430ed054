import { existsSync } from "node:fs";

/**
 * Folder of the package that a module belongs to: the nearest one above it with a `package.json`. Sources and
 * what is compiled from them into `dist/` both find data files this way.
 *
 * @param moduleUrl - `import.meta.url` of the module
 * @returns a `file:` URL that ends in `/`
 * @throws Error where no folder above the module has a `package.json`.
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
