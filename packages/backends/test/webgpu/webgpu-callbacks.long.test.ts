import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { describe, expect, it } from "vitest";

const run = promisify(execFile);

/** Drivers of Vulkan in software: SwiftShader, as Debian's chromium brings it. */
const SOFTWARE = ["/usr/lib/chromium/vk_swiftshader_icd.json"];

const driver = process.env.VK_DRIVER_FILES ?? SOFTWARE.find((file) => existsSync(file));
const why =
  driver === undefined
    ? " (skipped: there is no Vulkan driver; install chromium or set VK_DRIVER_FILES)"
    : "";

async function runCallback(file: string) {
  const program = fileURLToPath(new URL("../fixtures/webgpu-callback.mjs", import.meta.url));
  const env = { ...process.env, VK_DRIVER_FILES: file };
  const { stdout } = await run(process.execPath, [program], { env, timeout: 120_000 });
  return JSON.parse(stdout.trim().split("\n").at(-1)!);
}

describe.skipIf(driver === undefined)(`a callback with openWebGpu${why}`, () => {
  it("computes on one device for each instance, which is destroyed with it", async () => {
    const { answers, devices, failures, lost } = await runCallback(driver!);
    expect(answers).toEqual([0, 0, 1, 1, 2, 2].map((i) => [i * i, 4, 9, 16]));
    expect([devices, lost]).toEqual([2, true]);
    expect(failures).toEqual([
      expect.stringMatching(
        /^UNAVAILABLE: .*expected an adapter with 'no such adapter' in its name, got none; on Linux/,
      ),
      expect.stringMatching(/^UNSUPPORTED: .*cannot open WebGPU on adapter '.+': .*maxBufferSize/s),
    ]);
  });
});

it("a machine without a Vulkan driver is told what openWebGpu needs", async () => {
  const failed = (await runCallback("/nothing").catch((error) => error)) as { readonly stderr?: string };
  expect(failed.stderr).toContain(
    "cannot open WebGPU: expected an adapter, got none; on Linux it needs a Vulkan driver",
  );
});
