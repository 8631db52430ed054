import type { InstanceDevice } from "../../callable/infer-context.js";
import type { ExecutionProvider } from "./options.js";

/** Providers that run on NVIDIA's GPUs and take the number of the GPU. */
const ON_NVIDIA: ReadonlySet<string> = new Set(["cuda", "tensorrt"]);

/**
 * The providers to try for an instance, in order: the requested ones; by default `cuda` for an instance on a GPU and
 * `cpu` for any other.
 */
export function providersFor(
  { kind, id }: InstanceDevice,
  given: readonly ExecutionProvider[] | undefined,
): readonly ExecutionProvider[] {
  const providers = given ?? (kind === "KIND_GPU" ? ["cuda", "cpu"] : ["cpu"]);
  if (kind !== "KIND_GPU") return providers;
  return providers.map((provider) => {
    const options = typeof provider === "string" ? { name: provider } : provider;
    return ON_NVIDIA.has(options.name) ? { deviceId: id, ...options } : provider;
  });
}

/** Whether an instance needs a process of its own. WebGPU crashes when two threads of a process use it. */
export function needsProcess(providers: readonly ExecutionProvider[]): boolean {
  return providers.some((provider) => (typeof provider === "string" ? provider : provider.name) === "webgpu");
}
