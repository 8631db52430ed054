import { type DeviceId, heldByInstance, importInstalled } from "@tritonjs/core/internal";
import { errorFor, TritonError } from "@tritonjs/protocol";
import type { create } from "webgpu";

/*
 * `@tritonjs/backends/webgpu`: WebGPU for callbacks, by the package `webgpu`.
 */

/** An open GPU, as browsers have it: `GPUDevice` of WebGPU. */
export type WebGpuDevice = Awaited<ReturnType<Adapter["requestDevice"]>>;

type Gpu = ReturnType<typeof create>;
type Adapter = NonNullable<Awaited<ReturnType<Gpu["requestAdapter"]>>>;

/** Options of {@link openWebGpu}. */
export interface WebGpuOptions {
  /**
   * A part of the adapter's name, for machines with several: `"H100"`.
   * @default the fastest adapter
   */
  readonly adapter?: string;
  /** Features that the device must have: `["shader-f16"]`. @default none */
  readonly requiredFeatures?: readonly string[];
  /** Limits that the device must have: `{ maxBufferSize: 2 ** 30 }`. @default those that every adapter has */
  readonly requiredLimits?: Readonly<Record<string, number>>;
}

/**
 * Opens a GPU with WebGPU for a callback. The first call of an instance opens the device; later calls return the same
 * one. The device is destroyed with the instance. All instances of a process share one WebGPU, which does not know the
 * numbers of CUDA: the option `adapter` chooses between different GPUs.
 *
 * @param instance the context of a callback, or the argument of `initialize`
 * @throws TritonError UNAVAILABLE if the package `webgpu` is not installed or does not load, and if there is no such
 * adapter; UNSUPPORTED if the adapter refuses a feature or a limit
 * @example
 * ```ts
 * export default batch(async ({ x }, context) => {
 *   const device = await openWebGpu(context);
 *   return { y: await squares(device, x.data) };
 * });
 * ```
 */
export function openWebGpu(
  instance: { readonly device: DeviceId },
  options: WebGpuOptions = {},
): Promise<WebGpuDevice> {
  return heldByInstance(
    instance,
    `webgpu ${JSON.stringify(options)}`,
    () => open(options),
    async (device) => device.destroy(),
  );
}

/** WebGPU by the name of its adapter. Its object keeps the driver loaded, so a process has one for each. */
const opened = new Map<string, Gpu>();

async function open({
  adapter: name = "",
  requiredFeatures,
  requiredLimits,
}: WebGpuOptions): Promise<WebGpuDevice> {
  const gpu = opened.get(name) ?? (await load(name));
  opened.set(name, gpu);
  const adapter = await gpu.requestAdapter({ powerPreference: "high-performance" }).catch(() => null);
  if (adapter === null) {
    const wanted = name === "" ? "an adapter" : `an adapter with '${name}' in its name`;
    const text = `cannot open WebGPU: expected ${wanted}, got none; on Linux it needs a Vulkan driver, whose file VK_DRIVER_FILES can name`;
    throw errorFor("PACKAGE_NOT_INSTALLED", text);
  }
  try {
    return await adapter.requestDevice({
      ...(requiredFeatures && { requiredFeatures: requiredFeatures as never }),
      ...(requiredLimits && { requiredLimits }),
    });
  } catch (cause) {
    const { vendor, description } = adapter.info;
    const text = `cannot open WebGPU on adapter '${description || vendor}': ${TritonError.from(cause).message}`;
    throw errorFor("PLATFORM_NOT_SUPPORTED", text, { cause });
  }
}

async function load(adapter: string): Promise<Gpu> {
  let module: { readonly create: typeof create; readonly globals: object } | undefined;
  let reason: unknown;
  try {
    module = await importInstalled("webgpu", import.meta.url);
  } catch (error) {
    reason = error;
  }
  if (module === undefined) {
    const why =
      reason === undefined ? "it is not installed" : TritonError.from(reason).message.split("\n")[0];
    const text = `cannot load the package 'webgpu' (${why}): npm install webgpu`;
    throw errorFor("PACKAGE_NOT_INSTALLED", text, { cause: reason });
  }
  // The constants that programs of WebGPU use: GPUBufferUsage, GPUMapMode.
  for (const [key, value] of Object.entries(module.globals)) {
    if (!(key in globalThis))
      Object.defineProperty(globalThis, key, { value, configurable: true, writable: true });
  }
  return module.create(adapter === "" ? [] : [`adapter=${adapter}`]);
}
