import { importInstalled, notLoaded } from "@tritonjs/core/internal/worker";
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
  try {
    const sharp = await importInstalled<{ default: SharpModule }>("sharp", import.meta.url);
    if (sharp === undefined) throw new Error("it is not installed");
    return sharp.default;
  } catch (error) {
    throw notLoaded("sharp", error, "install it next to @tritonjs/backends");
  }
}
