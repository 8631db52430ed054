import nodeModule from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { TritonError } from "@tritonjs/protocol";
import type Sharp from "sharp";

/** The function that `sharp` exports. */
export type SharpModule = typeof Sharp;

let imported: Promise<SharpModule> | undefined;

/**
 * Imports `sharp` as this package resolves it, or else as the program does.
 *
 * @throws TritonError UNAVAILABLE if it is not installed, or does not load on this machine
 */
export function importSharp(): Promise<SharpModule> {
  imported ??= load();
  return imported;
}

async function load(): Promise<SharpModule> {
  const program = process.argv[1] === undefined ? [] : [pathToFileURL(process.argv[1]).href];
  const places = [import.meta.url, ...program, pathToFileURL(join(process.cwd(), "package.json")).href];
  const found = places.map(resolveFrom).find((path) => path !== undefined);
  if (found === undefined) throw missing("it is not installed");
  try {
    // Bundlers of applications leave the import alone: the specifier is not a literal.
    const module: { default: SharpModule } = await import(
      /* webpackIgnore: true */ /* turbopackIgnore: true */ /* @vite-ignore */ pathToFileURL(found).href
    );
    return module.default;
  } catch (error) {
    throw missing((error as Error).message.split("\n", 1)[0]!, error);
  }
}

function resolveFrom(place: string): string | undefined {
  try {
    return nodeModule.createRequire(place).resolve("sharp");
  } catch {
    return undefined;
  }
}

function missing(why: string, cause?: unknown): TritonError {
  return new TritonError("UNAVAILABLE", `cannot load sharp (${why}): install it next to @tritonjs/backends`, {
    reason: "PACKAGE_NOT_INSTALLED",
    cause,
  });
}
