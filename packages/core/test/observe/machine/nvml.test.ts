import koffi from "koffi";
import { afterEach, describe, expect, it } from "vitest";
import { fakeNvidiaSmi } from "../../../../../test/support/fake-nvidia-smi.js";
import { findGpus, MachineGpus } from "../../../src/config/gpus.js";
import { GpuMetrics } from "../../../src/observe/machine-metrics.js";
import type { Koffi } from "../../../src/optional-packages.js";
import { bindNvml } from "../../../src/system/nvml.js";

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
