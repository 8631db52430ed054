import { afterEach, beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { fakeNvidiaSmi } from "../../../../../test/support/fake-nvidia-smi.js";
import { GpuMetrics } from "../../../src/observe/machine-metrics.js";

/** Lines as `nvidia-smi` prints them: of two H100, and of a GPU that reports little. */
const PRINTED = `cat <<'END'
0, GPU-3c1f2a9e-5d0b-4a77-9c1e-0f6d2b8a4e11, 37, 81559, 4213, 121.53, 700.00
1, GPU-77aa01d4-2b9c-4e0f-8a35-6c2f9e1d7b20, 0, 81559, 4, 69.20, 700.00
2, GPU-0e5b6c7d-1111-4f4f-9d9d-123456789abc, [N/A], 6144, 310, [Not Supported], [N/A]
END`;

const [FIRST, SECOND, THIRD] = [...PRINTED.matchAll(/GPU-[0-9a-f-]+/g)].map(String);

let visible: string | undefined;
beforeEach(() => {
  visible = process.env.CUDA_VISIBLE_DEVICES;
  delete process.env.CUDA_VISIBLE_DEVICES;
});
afterEach(() => {
  if (visible === undefined) delete process.env.CUDA_VISIBLE_DEVICES;
  else process.env.CUDA_VISIBLE_DEVICES = visible;
});

async function useDriver(script: string | undefined): Promise<void> {
  const fake = await fakeNvidiaSmi(script);
  onTestFinished(() => fake[Symbol.asyncDispose]());
}

/** Metrics with a clock of their own, and their values by family and GPU. */
function open(intervalMs = 2000) {
  let now = 0;
  const warnings: string[] = [];
  const families = new GpuMetrics(
    intervalMs,
    { warning: (text) => void warnings.push(text) },
    () => now,
    // The tests of NVML have it.
    () => undefined,
  ).families();
  return {
    warnings,
    wait: (ms: number) => {
      now += ms;
    },
    async scrape() {
      const collected = await Promise.all(
        families.map(async ({ name, collect }) =>
          Array.from(await collect(), ({ labels, value }) => [`${name} ${labels.gpu_uuid}`, value] as const),
        ),
      );
      return Object.fromEntries(collected.flat());
    },
  };
}

describe("metrics of GPUs", () => {
  it("are those that nvidia-smi reports, in Triton's units", async () => {
    await useDriver(PRINTED);
    expect(await open().scrape()).toEqual({
      [`nv_gpu_utilization ${FIRST}`]: 0.37,
      [`nv_gpu_memory_total_bytes ${FIRST}`]: 81559 * 1048576,
      [`nv_gpu_memory_used_bytes ${FIRST}`]: 4213 * 1048576,
      [`nv_gpu_power_usage ${FIRST}`]: 121.53,
      [`nv_gpu_power_limit ${FIRST}`]: 700,
      [`nv_energy_consumption ${FIRST}`]: 0,
      [`nv_gpu_utilization ${SECOND}`]: 0,
      [`nv_gpu_memory_total_bytes ${SECOND}`]: 81559 * 1048576,
      [`nv_gpu_memory_used_bytes ${SECOND}`]: 4 * 1048576,
      [`nv_gpu_power_usage ${SECOND}`]: 69.2,
      [`nv_gpu_power_limit ${SECOND}`]: 700,
      [`nv_energy_consumption ${SECOND}`]: 0,
      [`nv_gpu_memory_total_bytes ${THIRD}`]: 6144 * 1048576,
      [`nv_gpu_memory_used_bytes ${THIRD}`]: 310 * 1048576,
    });
  });

  it("count the power over the time between two readings as energy", async () => {
    await useDriver(PRINTED);
    const gpus = open();
    await gpus.scrape();
    gpus.wait(10_000);
    const values = await gpus.scrape();
    expect(values[`nv_energy_consumption ${FIRST}`]).toBeCloseTo(1215.3);
    expect(values).not.toHaveProperty(`nv_energy_consumption ${THIRD}`);
  });

  it("ask the driver once for a whole scrape, and again when the interval is over", async () => {
    await useDriver('echo "0, GPU-a, $(date +%s%N | cut -c1-2), 1, 1, 1, 1"; echo asked >> "$0.log"');
    const gpus = open(500);
    const { readFile } = await import("node:fs/promises");
    const { delimiter, join } = await import("node:path");
    const log = join(process.env.PATH!.split(delimiter)[0]!, "nvidia-smi.log");
    const asked = async () => (await readFile(log, "utf8")).match(/asked/g)!.length;
    await gpus.scrape();
    gpus.wait(499);
    await gpus.scrape();
    expect(await asked()).toBe(1);
    gpus.wait(1);
    await gpus.scrape();
    expect(await asked()).toBe(2);
  });

  it.each([
    ["1", [SECOND]],
    [`${THIRD?.slice(0, 8)},0`, [THIRD, FIRST]],
    ["0,7,1", [FIRST]],
    ["", []],
  ])("are those of the GPUs that CUDA_VISIBLE_DEVICES='%s' shows", async (chosen, shown) => {
    await useDriver(PRINTED);
    process.env.CUDA_VISIBLE_DEVICES = chosen;
    const names = Object.keys(await open().scrape()).filter((name) => name.startsWith("nv_gpu_memory_total"));
    expect(names).toEqual(shown.map((uuid) => `nv_gpu_memory_total_bytes ${uuid}`));
  });

  it("are absent without nvidia-smi, and without a word", async () => {
    await useDriver(undefined);
    const gpus = open();
    expect(await gpus.scrape()).toEqual({});
    expect(gpus.warnings).toEqual([]);
  });

  it("vanish while the driver fails, and for good after three failures", async () => {
    await useDriver('echo "Unable to determine the device handle" >&2; exit 15');
    const gpus = open();
    for (let i = 0; i < 5; i++) {
      expect(await gpus.scrape()).toEqual({});
      gpus.wait(2000);
    }
    const why = "nvidia-smi: Unable to determine the device handle";
    expect(gpus.warnings).toEqual([
      `metrics of GPUs are not measured: ${why}`,
      `metrics of GPUs are not measured: ${why}`,
      `metrics of GPUs are no longer measured: ${why}`,
    ]);
  });

  it("are refused for lines of another form", async () => {
    await useDriver("echo '0, GPU-a, 5'");
    const gpus = open();
    expect(await gpus.scrape()).toEqual({});
    expect(gpus.warnings).toEqual([
      expect.stringContaining("expected a line of 7 fields (index,uuid,utilization.gpu,"),
    ]);
  });
});
