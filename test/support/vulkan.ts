import { existsSync } from "node:fs";
import { join } from "node:path";

/** Where Debian's chromium has Vulkan's loader and SwiftShader, a driver in software. */
const CHROMIUM = "/usr/lib/chromium";
const DRIVER = join(CHROMIUM, "vk_swiftshader_icd.json");

/** Environment of programs that use Vulkan; undefined if there is no driver. */
export const vulkanEnvironment = environment();

/** End of a test's name, with the reason if the test is skipped. */
export const vulkanNote =
  vulkanEnvironment === undefined
    ? " (skipped: there is no Vulkan driver; install chromium or set VK_DRIVER_FILES)"
    : "";

function environment(): NodeJS.ProcessEnv | undefined {
  if (process.env.VK_DRIVER_FILES !== undefined) return process.env;
  if (![DRIVER, join(CHROMIUM, "libvulkan.so.1")].every((file) => existsSync(file))) return undefined;
  // The loader of the system, if there is one, is found after that of chromium.
  const libraries = [CHROMIUM, process.env.LD_LIBRARY_PATH].filter((path) => path !== undefined).join(":");
  return { ...process.env, VK_DRIVER_FILES: DRIVER, LD_LIBRARY_PATH: libraries };
}
