import { existsSync, realpathSync } from "node:fs";
import { dirname, join } from "node:path";
import type { Koffi, NativeLibrary } from "@tritonjs/core/internal";
import { neededLibraries } from "./library-file.js";
import { folderEntries, pythonFolders, systemFolders } from "./ort-library.js";

const versionIn = (name: string) => /\.so\.(\d+)/.exec(name)?.[1] ?? "";

/** Libraries that providers for NVIDIA's GPUs need beyond those of the system, with the command that installs each. */
export const CUDA_PACKAGES: readonly (readonly [RegExp, (name: string) => string])[] = [
  [/^libcudnn/, (name) => `pip install nvidia-cudnn-cu12==${versionIn(name)}.*`],
  [/^libnvinfer|^libnvonnxparser/, (name) => `pip install tensorrt==${versionIn(name)}.*`],
  [/^libcufft/, () => "pip install nvidia-cufft-cu12"],
  [/^libcurand/, () => "pip install nvidia-curand-cu12"],
  [/^libcudart/, (name) => `pip install nvidia-cuda-runtime-cu${versionIn(name)}`],
  [/^libnvrtc/, (name) => `pip install nvidia-cuda-nvrtc-cu${versionIn(name)}`],
  [/^libcublas/, (name) => `pip install nvidia-cublas-cu${versionIn(name)}`],
];

/** Whether a library belongs to CUDA, cuDNN or TensorRT. */
export function isOfCuda(name: string): boolean {
  return CUDA_PACKAGES.some(([pattern]) => pattern.test(name));
}

/** Folders of NVIDIA's packages for Python: `nvidia/cudnn/lib`, `tensorrt_libs`. The system's loader does not look there. */
export function cudaFoldersOf(python: readonly string[]): readonly string[] {
  return python.flatMap((folder) => [
    ...folderEntries(join(folder, "nvidia")).map((name) => join(folder, "nvidia", name, "lib")),
    join(folder, "tensorrt_libs"),
  ]);
}

/** Libraries that stay loaded as long as the process, because a provider uses them. */
const loaded = new Map<string, NativeLibrary>();

/**
 * Loads the libraries of CUDA that a provider needs and that only Python's packages have, as `onnxruntime.preload_dlls()`
 * does in Python. The system's loader then finds them by their names. Libraries that do not open are left out: opening
 * the provider names them.
 *
 * @param library path of ONNX Runtime's library, beside which the provider's file is
 */
export function preloadCuda(
  koffi: Pick<Koffi, "load">,
  library: string,
  provider: "cuda" | "tensorrt",
  env: Readonly<Record<string, string | undefined>> = process.env,
): void {
  if (process.platform !== "linux") return;
  const file = join(dirname(realPath(library)), `libonnxruntime_providers_${provider}.so`);
  const needed = neededLibraries(file).filter(isOfCuda);
  if (needed.length === 0) return;
  const system = [...systemFolders(process.platform, process.arch, env), "/usr/local/cuda/lib64"];
  const folders = cudaFoldersOf(pythonFolders(env));
  for (const name of needed) {
    if (loaded.has(name) || system.some((folder) => existsSync(join(folder, name)))) continue;
    const folder = folders.find((one) => existsSync(join(one, name)));
    if (folder === undefined) continue;
    try {
      loaded.set(name, koffi.load(join(folder, name), { global: true }));
    } catch {
      // The error of the provider says more.
    }
  }
}

function realPath(file: string): string {
  try {
    return realpathSync(file);
  } catch {
    return file;
  }
}
