import type { Koffi } from "@tritonjs/core/internal";
import koffi from "koffi";
import { afterEach, beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { fakeNvidiaSmi } from "../../../../test/support/fake-nvidia-smi.js";
import { findGpus } from "../../src/gpu/driver-gpus.js";
import { GpuMetrics } from "../../src/gpu/gpu-metrics.js";
import { bindNvml } from "../../src/gpu/nvml.js";
import { MachineGpus } from "../../src/gpu/server-gpus.js";

describe("gpu metrics", () => {
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
            Array.from(
              await collect(),
              ({ labels, value }) => [`${name} ${labels.gpu_uuid}`, value] as const,
            ),
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
      const names = Object.keys(await open().scrape()).filter((name) =>
        name.startsWith("nv_gpu_memory_total"),
      );
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
});

/** The answers of one GPU; undefined for a figure that it does not have. */
interface Recorded {
  readonly uuid: string;
  readonly utilization?: number;
  /** Total and used bytes. */
  readonly memory?: readonly [total: bigint, used: bigint];
  readonly milliwatts?: number;
  readonly limitMilliwatts?: number;
  millijoules?: bigint;
}

const H100: Recorded = {
  uuid: "GPU-3c1f2a9e-5d0b-4a77-9c1e-0f6d2b8a4e11",
  utilization: 37,
  memory: [85520809984n, 4418699264n],
  milliwatts: 121_530,
  limitMilliwatts: 700_000,
  millijoules: 1_000_000n,
};

const SMALL: Recorded = {
  uuid: "GPU-0e5b6c7d-1111-4f4f-9d9d-123456789abc",
  memory: [6442450944n, 325058560n],
};

const NOT_SUPPORTED = 3;

/** A stand-in for koffi, whose library has the functions of NVML with recorded answers in NVML's structures. */
function standIn(gpus: readonly Recorded[], failing: { init?: number } = {}) {
  const memcpy = koffi.load(null).func("void *memcpy(uint64_t to, uint64_t from, uint64_t size)");
  const put = (to: bigint, ...values: ArrayBufferView[]) => {
    let at = BigInt(to);
    for (const value of values) {
      memcpy(at, koffi.address(value), value.byteLength);
      at += BigInt(value.byteLength);
    }
    return 0;
  };
  const gpuOf = (handle: bigint | number) => gpus[Number(handle) - 1]!;
  const uint = (value: number | undefined, to: bigint) =>
    value === undefined ? NOT_SUPPORTED : put(to, Uint32Array.of(value));
  const functions: Readonly<Record<string, (...args: never[]) => number>> = {
    nvmlInit_v2: () => failing.init ?? 0,
    nvmlDeviceGetCount_v2: (to: bigint) => uint(gpus.length, to),
    nvmlDeviceGetHandleByIndex_v2: (i: number, to: bigint) => put(to, BigUint64Array.of(BigInt(i + 1))),
    nvmlDeviceGetUUID: (gpu: bigint, to: bigint) => put(to, Buffer.from(`${gpuOf(gpu).uuid}\0`)),
    nvmlDeviceGetUtilizationRates: (gpu: bigint, to: bigint) => uint(gpuOf(gpu).utilization, to),
    nvmlDeviceGetMemoryInfo: (gpu: bigint, to: bigint) => {
      const { memory } = gpuOf(gpu);
      if (memory === undefined) return NOT_SUPPORTED;
      return put(to, BigUint64Array.of(memory[0], memory[0] - memory[1], memory[1]));
    },
    nvmlDeviceGetPowerUsage: (gpu: bigint, to: bigint) => uint(gpuOf(gpu).milliwatts, to),
    nvmlDeviceGetEnforcedPowerLimit: (gpu: bigint, to: bigint) => uint(gpuOf(gpu).limitMilliwatts, to),
    nvmlDeviceGetTotalEnergyConsumption: (gpu: bigint, to: bigint) => {
      const { millijoules } = gpuOf(gpu);
      return millijoules === undefined ? NOT_SUPPORTED : put(to, BigUint64Array.of(millijoules));
    },
  };
  const load = () => ({
    func: (name: string) => {
      if (name.includes("nvmlErrorString")) return () => "Driver/library version mismatch";
      const call = functions[name]!;
      const async = (...args: unknown[]) => {
        const done = args.pop() as (error: Error | null, result: number) => void;
        queueMicrotask(() => done(null, call(...(args as never[]))));
      };
      return Object.assign(call, { async });
    },
  });
  return bindNvml({ ...koffi, load } as unknown as Koffi, "libnvidia-ml.so.1");
}

describe("the GPUs of a machine with NVML", () => {
  const visible = process.env.CUDA_VISIBLE_DEVICES;
  afterEach(() => {
    if (visible === undefined) delete process.env.CUDA_VISIBLE_DEVICES;
    else process.env.CUDA_VISIBLE_DEVICES = visible;
  });

  it("are those that the library lists, as CUDA_VISIBLE_DEVICES selects them, without nvidia-smi", async () => {
    await using _ = await fakeNvidiaSmi("exit 3");
    delete process.env.CUDA_VISIBLE_DEVICES;
    expect(findGpus(() => standIn([H100, SMALL]))).toEqual({ numbers: [0, 1] });
    process.env.CUDA_VISIBLE_DEVICES = SMALL.uuid;
    expect(findGpus(() => standIn([H100, SMALL]))).toEqual({ numbers: [0] });
    process.env.CUDA_VISIBLE_DEVICES = "-1";
    expect(findGpus(() => standIn([H100]))).toEqual({
      numbers: [],
      reason: "CUDA_VISIBLE_DEVICES '-1' hides all 1 GPUs",
    });
  });

  it("are none, with NVML's text, if the driver does not start or has no GPU for this process", () => {
    delete process.env.CUDA_VISIBLE_DEVICES;
    expect(findGpus(() => standIn([], { init: 18 }))).toEqual({
      numbers: undefined,
      reason: "NVML: it does not start: Driver/library version mismatch (error 18)",
    });
    expect(findGpus(() => standIn([]))).toEqual({ numbers: [], reason: "NVML lists no GPUs" });
    const lines: string[] = [];
    const log = { info: (line: string) => lines.push(line), warning: (line: string) => lines.push(line) };
    expect(new MachineGpus(log, () => standIn([H100])).numbers).toEqual([0]);
    expect(lines).toEqual(["GPUs for instances: 0"]);
  });

  it("are listed while a reading of their figures is under way", async () => {
    const nvml = standIn([H100, SMALL]);
    const reading = nvml.read();
    expect(nvml.list().map(({ uuid }) => uuid)).toEqual([H100.uuid, SMALL.uuid]);
    expect((await reading).map(({ uuid }) => uuid)).toEqual([H100.uuid, SMALL.uuid]);
  });
});

async function scrape(metrics: GpuMetrics): Promise<Readonly<Record<string, number>>> {
  const collected = await Promise.all(
    metrics
      .families()
      .map(async ({ name, collect }) =>
        Array.from(await collect(), ({ labels, value }) => [`${name} ${labels.gpu_uuid}`, value] as const),
      ),
  );
  return Object.fromEntries(collected.flat());
}

describe("metrics of GPUs by NVML", () => {
  it("are its figures in Triton's units, with the energy that the driver counts since the first scrape", async () => {
    let now = 0;
    const gpu = { ...H100 };
    const nvml = standIn([gpu, SMALL]);
    const warnings: string[] = [];
    const log = { warning: (text: string) => void warnings.push(text) };
    const metrics = new GpuMetrics(
      2000,
      log,
      () => now,
      () => nvml,
    );
    expect(await scrape(metrics)).toEqual({
      [`nv_gpu_utilization ${H100.uuid}`]: 0.37,
      [`nv_gpu_memory_total_bytes ${H100.uuid}`]: 85520809984,
      [`nv_gpu_memory_used_bytes ${H100.uuid}`]: 4418699264,
      [`nv_gpu_power_usage ${H100.uuid}`]: 121.53,
      [`nv_gpu_power_limit ${H100.uuid}`]: 700,
      [`nv_energy_consumption ${H100.uuid}`]: 0,
      [`nv_gpu_memory_total_bytes ${SMALL.uuid}`]: 6442450944,
      [`nv_gpu_memory_used_bytes ${SMALL.uuid}`]: 325058560,
    });
    now += 2000;
    gpu.millijoules! += 243_060n;
    expect((await scrape(metrics))[`nv_energy_consumption ${H100.uuid}`]).toBeCloseTo(243.06);
    expect(warnings).toEqual([]);
  });

  it("vanish with NVML's text while it fails", async () => {
    const warnings: string[] = [];
    const log = { warning: (text: string) => void warnings.push(text) };
    const nvml = standIn([H100], { init: 18 });
    expect(
      await scrape(
        new GpuMetrics(
          2000,
          log,
          () => 0,
          () => nvml,
        ),
      ),
    ).toEqual({});
    expect(warnings).toEqual([
      "metrics of GPUs are not measured: NVML: it does not start: Driver/library version mismatch (error 18)",
    ]);
  });
});
