import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { describe, expect, it } from "vitest";
import { vulkanEnvironment, vulkanNote } from "../../../../test/support/vulkan.js";

const run = promisify(execFile);

async function runCallback(env: NodeJS.ProcessEnv) {
  const program = fileURLToPath(new URL("../fixtures/webgpu-callback.mjs", import.meta.url));
  const { stdout } = await run(process.execPath, [program], { env });
  return JSON.parse(stdout.trim().split("\n").at(-1)!);
}

describe.skipIf(vulkanEnvironment === undefined)(`a callback with openWebGpu${vulkanNote}`, () => {
  it("computes on one device for each instance, which is destroyed with it", async () => {
    const { answers, devices, failures, lost } = await runCallback(vulkanEnvironment!);
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
  const failed = (await runCallback({ ...process.env, VK_DRIVER_FILES: "/nothing" }).catch(
    (error) => error,
  )) as { readonly stderr?: string };
  expect(failed.stderr).toContain(
    "cannot open WebGPU: expected an adapter, got none; on Linux it needs a Vulkan driver",
  );
});
