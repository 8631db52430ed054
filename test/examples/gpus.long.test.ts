import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { exampleFolder } from "../support/example-readme.js";
import { expectPromisedOutput } from "../support/example-run.js";
import { fakeNvidiaSmi } from "../support/fake-nvidia-smi.js";
import { Program } from "../support/program.js";
import { repositoryRoot } from "../support/repository.js";

describe.skipIf(process.platform === "win32")("the example of GPUs", () => {
  it("runs on the CPU of a machine without GPUs, and says why", async () => {
    await using _ = await fakeNvidiaSmi('echo "No devices were found"');
    await expectPromisedOutput("gpus");
  });

  it("places an instance on each GPU, tries the providers in order, and shows the figures of the GPUs", async () => {
    const uuids = ["GPU-00000000-aaaa", "GPU-11111111-aaaa"];
    const lines = (figures: string) => uuids.map((uuid, i) => `echo "${i}, ${uuid}${figures}"`).join("; ");
    await using _ = await fakeNvidiaSmi(
      `case "$1" in *utilization*) ${lines(", 37, 81559, 4213, 121.53, 700.00")} ;; *) ${lines("")} ;; esac`,
    );
    const main = join(exampleFolder("gpus"), "dist", "main.js");
    const { code, stdout, stderr } = await Program.node(main, [], repositoryRoot).ended;
    expect({ code, stderr: code === 0 ? "" : stderr }).toEqual({ code: 0, stderr: "" });
    const instances = [...stdout.matchAll(/^flowers_0_0: KIND_GPU (\d), provider (\w+)$/gm)];
    expect(instances.map(([, id]) => id)).toEqual(["0", "1"]);
    const refused = [...stdout.matchAll(/execution provider '(\w+)' cannot be used: .+; trying '(\w+)'$/gm)];
    const order = ["cuda", "webgpu", "cpu"];
    for (const [, , provider] of instances) {
      const before = order.slice(0, order.indexOf(provider!));
      expect(refused.map(([, name]) => name)).toEqual(expect.arrayContaining(before));
    }
    expect(stdout).toContain("species 0 and 2\n");
    for (const uuid of uuids) expect(stdout).toContain(`nv_gpu_utilization{gpu_uuid="${uuid}"} 0.37\n`);
  });
});
