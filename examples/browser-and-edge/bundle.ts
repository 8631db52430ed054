import { fileURLToPath } from "node:url";
import { rolldown } from "rolldown";

/** Joins a compiled module of this folder and its imports to one file for the web platform. */
export async function bundleForWeb(module: string): Promise<string> {
  const input = fileURLToPath(new URL(module, import.meta.url));
  const build = await rolldown({ input, platform: "browser" });
  const { output } = await build.generate({ format: "esm", minify: true });
  await build.close();
  return output[0].code;
}
