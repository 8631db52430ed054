import { delimiter } from "node:path";
import { describe, expect, it } from "vitest";
import { fakeNvidiaSmi, gpuList } from "../../../../test/support/fake-nvidia-smi.js";
import { readArguments } from "../../src/options/read-arguments.js";
import { gpuOptions, loadExtensions } from "../../src/serve/extensions.js";

const valuesOf = (...args: string[]) => readArguments(["--model-repository=models", ...args], {}).values;

const options = (...args: string[]) => gpuOptions(valuesOf(...args));

async function names(environment: NodeJS.ProcessEnv, ...args: string[]): Promise<string[]> {
  const given = { values: valuesOf(...args), additions: {}, environment, spans: undefined, logError() {} };
  return (await loadExtensions(given)).map(({ extension }) => extension.name);
}

describe("GPUs from the command line", () => {
  it("have tritonserver's defaults", () => {
    expect(options()).toEqual({
      pinnedMemoryPoolByteSize: 2 ** 28,
      cudaMemoryPoolByteSize: {},
      metrics: true,
      metricsIntervalMs: 2000,
    });
  });

  it("limit pinned memory, and memory on each GPU", () => {
    const flags = ["--pinned-memory-pool-byte-size=1000", "--cuda-memory-pool-byte-size=0:2000"];
    expect(options(...flags, "--cuda-memory-pool-byte-size=3:0")).toMatchObject({
      pinnedMemoryPoolByteSize: 1000,
      cudaMemoryPoolByteSize: { 0: 2000, 3: 0 },
    });
    expect(options("--pinned-memory-pool-byte-size=-1")).toMatchObject({ pinnedMemoryPoolByteSize: 0 });
  });

  it("are loaded when a flag asks for them", async () => {
    expect(await names({ PATH: "" }, "--gpu-fallback=cpu")).toContain("gpu");
    expect(await names({ PATH: "" }, "--cuda-memory-pool-byte-size=0:1")).toContain("gpu");
  });

  it.skipIf(process.platform === "win32")("are loaded when the driver is installed", async () => {
    await using _ = await fakeNvidiaSmi(gpuList(1));
    const [folder] = process.env.PATH!.split(delimiter);
    expect(await names({ PATH: folder })).toContain("gpu");
  });
});
