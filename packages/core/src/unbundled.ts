/*
 * Modules that bundlers of applications leave alone: packages that an application installs if it needs them, and
 * modules of users. A bundler that followed these imports would fail where the package is not installed. So the names
 * are no literals, and the comments address bundlers.
 */
import nodeModule from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

/** Imports a module by its URL or the name of its package. */
export function importUnbundled<T>(specifier: string): Promise<T> {
  return import(/* webpackIgnore: true */ /* turbopackIgnore: true */ /* @vite-ignore */ specifier);
}

/** Returns the `require` of a module, given its URL. */
export function unbundledRequire(url: string): NodeJS.Require {
  return nodeModule.createRequire(url);
}

/**
 * Imports a package that may be installed: as this package resolves it, or else as the program does. Undefined if
 * neither finds it.
 */
export async function importInstalled<M>(name: string): Promise<M | undefined> {
  const program = process.argv[1] === undefined ? [] : [pathToFileURL(process.argv[1]).href];
  for (const from of [import.meta.url, ...program, pathToFileURL(join(process.cwd(), "package.json")).href]) {
    const found = resolveFrom(from, name);
    if (found !== undefined) return importUnbundled(pathToFileURL(found).href);
  }
  return undefined;
}

function resolveFrom(from: string, name: string): string | undefined {
  try {
    return unbundledRequire(from).resolve(name);
  } catch {
    return undefined;
  }
}
