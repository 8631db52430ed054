import { type Koffi, type NativeFunction, requireKoffi } from "@tritonjs/core/internal";

/** A GPU as the driver numbers it. */
export interface DriverGpu {
  readonly number: number;
  /** `GPU-` and a UUID; empty if unknown. */
  readonly uuid: string;
}

/** Measurements of one GPU. A figure that the driver does not know is undefined. */
export interface GpuReading extends DriverGpu {
  /** Share of time in which the GPU was busy, from 0 to 1. */
  readonly utilization: number | undefined;
  readonly memoryTotalBytes: number | undefined;
  readonly memoryUsedBytes: number | undefined;
  /** Watts. */
  readonly powerUsage: number | undefined;
  /** Watts. */
  readonly powerLimit: number | undefined;
  /** Joules since the driver was loaded. */
  readonly energy?: number | undefined;
}

/** NVIDIA's management library. */
export interface Nvml {
  /**
   * Reads the figures of all GPUs, on threads of libuv's pool: the driver can take long to answer.
   *
   * @throws Error with NVML's text
   */
  read(): Promise<readonly GpuReading[]>;
  /**
   * Lists the GPUs on this thread.
   *
   * @throws Error with NVML's text
   */
  list(): readonly DriverGpu[];
}

const NAMES: Readonly<Record<string, string>> = { linux: "libnvidia-ml.so.1", win32: "nvml.dll" };

let loaded: Nvml | "missing" | undefined;

/** Loads NVML through koffi. Undefined if koffi or the library is missing. */
export function loadNvml(): Nvml | undefined {
  if (loaded === undefined) {
    try {
      const name = NAMES[process.platform];
      loaded = name === undefined ? "missing" : bindNvml(requireKoffi(), name);
    } catch {
      loaded = "missing";
    }
  }
  return loaded === "missing" ? undefined : loaded;
}

const UUID_BYTES = 96;

type Call = NativeFunction<readonly (number | bigint)[], number>;

/**
 * Binds the functions of a library.
 *
 * @throws Error if it cannot be opened or lacks a function
 */
export function bindNvml(koffi: Koffi, file: string): Nvml {
  const library = koffi.load(file);
  const functionOf = (name: string, parameters: readonly string[]) =>
    library.func(name, "int", parameters) as Call;
  const init = functionOf("nvmlInit_v2", []);
  const count = functionOf("nvmlDeviceGetCount_v2", ["uint64"]);
  const handleOf = functionOf("nvmlDeviceGetHandleByIndex_v2", ["uint", "uint64"]);
  const uuidOf = functionOf("nvmlDeviceGetUUID", ["uint64", "uint64", "uint"]);
  const utilizationOf = functionOf("nvmlDeviceGetUtilizationRates", ["uint64", "uint64"]);
  const memoryOf = functionOf("nvmlDeviceGetMemoryInfo", ["uint64", "uint64"]);
  const powerOf = functionOf("nvmlDeviceGetPowerUsage", ["uint64", "uint64"]);
  const limitOf = functionOf("nvmlDeviceGetEnforcedPowerLimit", ["uint64", "uint64"]);
  const energyOf = functionOf("nvmlDeviceGetTotalEnergyConsumption", ["uint64", "uint64"]);
  const errorText = library.func("const char *nvmlErrorString(int error)") as (error: number) => string;
  const out = new DataView(new ArrayBuffer(UUID_BYTES));
  const at = koffi.address(out);
  const call = (called: Call, ...args: (number | bigint)[]) =>
    new Promise<number>((resolve, reject) =>
      called.async(...args, (error, result) => (error === null ? resolve(result) : reject(error))),
    );
  const assertDone = (what: string, error: number): void => {
    if (error !== 0) throw new Error(`NVML: ${what}: ${errorText(error)} (error ${error})`);
  };
  const check = async (what: string, status: Promise<number>): Promise<void> =>
    assertDone(what, await status);
  const textAt = (bytes: Uint8Array): string =>
    new TextDecoder("latin1").decode(bytes.subarray(0, Math.max(0, bytes.indexOf(0))));
  /** A figure, or undefined if the GPU does not have it. */
  const figure = async (called: Call, gpu: bigint, take: () => number): Promise<number | undefined> =>
    (await call(called, gpu, at)) === 0 ? take() : undefined;
  let isOpen = false;
  let isReading = false;

  async function readGpu(number: number): Promise<GpuReading> {
    await check(`GPU ${number}`, call(handleOf, number, at));
    const gpu = out.getBigUint64(0, true);
    await check(`UUID of GPU ${number}`, call(uuidOf, gpu, at, UUID_BYTES));
    const uuid = textAt(new Uint8Array(out.buffer));
    const word = (offset: number) => Number(out.getBigUint64(offset, true));
    const milli = () => out.getUint32(0, true) / 1000;
    const utilization = await figure(utilizationOf, gpu, () => out.getUint32(0, true) / 100);
    // Total, free and used.
    const memory = (await call(memoryOf, gpu, at)) === 0 ? [word(0), word(16)] : [];
    const powerUsage = await figure(powerOf, gpu, milli);
    const powerLimit = await figure(limitOf, gpu, milli);
    const energy = await figure(energyOf, gpu, () => word(0) / 1000);
    const [memoryTotalBytes, memoryUsedBytes] = memory;
    return { number, uuid, utilization, memoryTotalBytes, memoryUsedBytes, powerUsage, powerLimit, energy };
  }

  return {
    async read() {
      // The driver has not answered the last reading: the buffer is still its own.
      if (isReading) throw new Error("NVML: it has not answered the last reading");
      isReading = true;
      try {
        return await readAll();
      } finally {
        isReading = false;
      }
    },
    list() {
      // A reading may be under way, which has the other buffer.
      const own = new DataView(new ArrayBuffer(UUID_BYTES));
      const to = koffi.address(own);
      if (!isOpen) assertDone("it does not start", init());
      isOpen = true;
      assertDone("number of GPUs", count(to));
      return Array.from({ length: own.getUint32(0, true) }, (_, number) => {
        assertDone(`GPU ${number}`, handleOf(number, to));
        assertDone(`UUID of GPU ${number}`, uuidOf(own.getBigUint64(0, true), to, UUID_BYTES));
        return { number, uuid: textAt(new Uint8Array(own.buffer)) };
      });
    },
  };

  async function readAll(): Promise<readonly GpuReading[]> {
    if (!isOpen) await check("it does not start", call(init));
    isOpen = true;
    await check("number of GPUs", call(count, at));
    const length = out.getUint32(0, true);
    const readings: GpuReading[] = [];
    for (let number = 0; number < length; number++) readings.push(await readGpu(number));
    return readings;
  }
}
