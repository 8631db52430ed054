/*
 * Modules that bundlers of applications leave alone: packages that an application installs if it needs them, and
 * modules of users. A bundler that followed these imports would fail where the package is not installed. So the names
 * are no literals, and the comments address bundlers.
 */
import nodeModule from "node:module";

/** Imports a module by its URL or the name of its package. */
export function importUnbundled<T>(specifier: string): Promise<T> {
  return import(/* webpackIgnore: true */ /* turbopackIgnore: true */ /* @vite-ignore */ specifier);
}

/** Returns the `require` of a module, given its URL. */
export function unbundledRequire(url: string): NodeJS.Require {
  return nodeModule.createRequire(url);
}
