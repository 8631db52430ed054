import { join } from "node:path";
import { diagnoseGpus } from "@tritonjs/backends/onnxruntime";
import { describe, expect, it } from "vitest";
import { cutLibrary, ELF_ARM64, ELF_X64, elfLibrary } from "../../../../test/support/elf-library.js";
import { type RepositoryFiles, RepositoryOnDisk } from "../../../../test/support/repository-on-disk.js";
import type { ExaminedMachine } from "../../src/onnxruntime/native/gpu-doctor.js";

const triplet = process.arch === "arm64" ? "aarch64-linux-gnu" : "x86_64-linux-gnu";
const [other, otherName] = process.arch === "arm64" ? [ELF_X64, "x64"] : [ELF_ARM64, "arm64"];
const lib = (name: string) => `usr/lib/${triplet}/${name}`;

const CUDA = [
  "libcublasLt.so.12",
  "libcublas.so.12",
  "libcudnn.so.9",
  "libcurand.so.10",
  "libcufft.so.11",
  "libcudart.so.12",
];
const TENSORRT = ["libnvinfer.so.10", "libcudart.so.12"];

/** The files of a machine on which models run on the GPU, as far as files show. */
const GOOD: RepositoryFiles = {
  "proc/driver/nvidia/version":
    "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.159.04  Tue Nov  3 10:00:00 UTC 2026\n",
  "dev/nvidia0": "",
  "dev/nvidiactl": "",
  "dev/nvidia-uvm": "",
  [lib("libcuda.so.1")]: elfLibrary(),
  [lib("libcuda.so.580.159.04")]: elfLibrary(),
  [lib("libnvidia-ml.so.1")]: elfLibrary(),
  ...Object.fromEntries(CUDA.map((name) => [lib(name), elfLibrary()])),
  [lib("libnvinfer.so.10")]: elfLibrary(),
  "ort/libonnxruntime.so.1": elfLibrary(),
  "ort/libonnxruntime_providers_shared.so": elfLibrary(),
  "ort/libonnxruntime_providers_cuda.so": elfLibrary(CUDA),
  "ort/libonnxruntime_providers_tensorrt.so": elfLibrary(TENSORRT),
};

const PYTHON = "usr/lib/python3/site-packages";

/** Folders of NVIDIA's packages for Python, and their libraries. */
const WHEELS: Readonly<Record<string, readonly string[]>> = {
  "nvidia/cublas": ["libcublasLt.so.12", "libcublas.so.12"],
  "nvidia/cudnn": ["libcudnn.so.9"],
  "nvidia/curand": ["libcurand.so.10"],
  "nvidia/cufft": ["libcufft.so.11"],
  "nvidia/cuda_runtime": ["libcudart.so.12"],
};

/** Libraries of CUDA that come from `pip install onnxruntime-gpu[cuda,cudnn]`, and none of the system. */
const WHEEL_FILES = Object.fromEntries([
  ...[...CUDA, "libnvinfer.so.10"].map((name) => [lib(name), undefined] as const),
  ...Object.entries(WHEELS).flatMap(([folder, names]) =>
    names.map(
      (name) =>
        [`${PYTHON}/${folder}/lib/${name}`, elfLibrary([], undefined, name) as Buffer | undefined] as const,
    ),
  ),
  [`${PYTHON}/tensorrt_libs/libnvinfer.so.10`, elfLibrary([], undefined, "libnvinfer.so.10")] as const,
]);

interface Tree {
  /** Files that differ; undefined for a file that is missing. */
  readonly files?: Readonly<Record<string, string | Uint8Array | undefined>>;
  readonly env?: Readonly<Record<string, string>>;
  readonly provider?: "cuda" | "tensorrt";
  readonly library?: undefined;
}

/** The wrong findings about a tree of files: `subject: text -> fix`. */
async function wrongIn(tree: Tree): Promise<string[]> {
  const files = Object.entries({ ...GOOD, ...tree.files }).filter(([, content]) => content !== undefined);
  await using folder = await RepositoryOnDisk.create(Object.fromEntries(files) as RepositoryFiles);
  const root = folder.path;
  const machine: ExaminedMachine = {
    root,
    env: { PATH: process.env.PATH, LD_LIBRARY_PATH: join(root, `usr/lib/${triplet}`), ...tree.env },
    platform: process.platform,
    arch: process.arch,
    library: "library" in tree ? undefined : join(root, "ort/libonnxruntime.so.1"),
  };
  const findings = await diagnoseGpus(machine, tree.provider);
  return findings
    .filter(({ isGood }) => !isGood)
    .map(({ subject, text, fix }) => `${subject}: ${text} -> ${fix}`.replaceAll(root, ""));
}

const container = { ".dockerenv": "" };
const run = "docker run --gpus all ...";
const restore = "npm rebuild onnxruntime-node (or: pip install onnxruntime-gpu)";
const capabilities = (lacking: string) =>
  `docker run --gpus all -e NVIDIA_DRIVER_CAPABILITIES=compute,utility ... (it lacks '${lacking}')`;

/** Broken trees, each with the one thing that is wrong and what mends it. */
const BROKEN: readonly (readonly [what: string, tree: Tree, ...wrong: (string | RegExp)[]])[] = [
  [
    "no driver",
    { files: { "proc/driver/nvidia/version": undefined } },
    "driver: NVIDIA's kernel module is not loaded -> sudo apt install nvidia-driver && sudo reboot",
  ],
  [
    "a container that was started without GPUs",
    { files: { ...container, "proc/driver/nvidia/version": undefined, "dev/nvidia0": undefined } },
    `driver: the container sees no NVIDIA driver: it was started without GPUs, or its host has none -> ${run}`,
    `device files: /dev/nvidia0 is missing -> ${run}`,
  ],
  [
    "a missing device file",
    { files: { "dev/nvidia-uvm": undefined } },
    "device files: /dev/nvidia-uvm is missing -> sudo nvidia-modprobe -u -c 0",
  ],
  [
    "hidden GPUs",
    { env: { CUDA_VISIBLE_DEVICES: "-1" } },
    "CUDA_VISIBLE_DEVICES: its value '-1' hides all GPUs -> unset CUDA_VISIBLE_DEVICES",
  ],
  [
    "a container without the driver's library",
    { files: { ...container, [lib("libcuda.so.1")]: undefined } },
    /^libcuda.so.1: it is missing; found libcuda.so.580.159.04 -> docker run .*lacks 'compute'\)$/,
  ],
  [
    "a container without NVML",
    { files: { ...container, [lib("libnvidia-ml.so.1")]: undefined } },
    `libnvidia-ml.so.1: it is missing -> ${capabilities("utility")}`,
  ],
  [
    "a driver that was updated without a restart",
    { files: { [lib("libcuda.so.580.159.04")]: undefined, [lib("libcuda.so.590.10.01")]: elfLibrary() } },
    "libcuda.so.1: it is of driver 590.10.01, but the loaded kernel module is 580.159 -> sudo reboot",
  ],
  [
    "a driver that is too old",
    {
      files: {
        "proc/driver/nvidia/version": "Kernel Module  470.42.01",
        [lib("libcuda.so.580.159.04")]: undefined,
      },
    },
    "driver: version 470.42 is too old: CUDA 12 needs 525.60 or newer -> sudo apt install nvidia-driver && sudo reboot",
  ],
  [
    "no ONNX Runtime",
    { library: undefined },
    "ONNX Runtime: no library was found -> npm install onnxruntime-node",
  ],
  [
    "an ONNX Runtime for another processor",
    { files: { "ort/libonnxruntime.so.1": elfLibrary([], other) } },
    `ONNX Runtime: '/ort/libonnxruntime.so.1': got a library for linux ${otherName} -> npm install onnxruntime-node`,
  ],
  [
    "no file of the provider",
    { files: { "ort/libonnxruntime_providers_cuda.so": undefined } },
    `libonnxruntime_providers_cuda.so: it is missing -> ${restore}`,
  ],
  [
    "no file that providers share",
    { files: { "ort/libonnxruntime_providers_shared.so": undefined } },
    `libonnxruntime_providers_shared.so: it is missing -> ${restore}`,
  ],
  [
    "a file of the provider that is not a library",
    { files: { "ort/libonnxruntime_providers_cuda.so": "<html>404</html>" } },
    `libonnxruntime_providers_cuda.so: '/ort/libonnxruntime_providers_cuda.so': got a file that is not a library -> ${restore}`,
  ],
  [
    "another version of cuDNN",
    { files: { [lib("libcudnn.so.9")]: undefined, [lib("libcudnn.so.8")]: elfLibrary() } },
    "libcudnn.so.9: it is missing; found libcudnn.so.8 -> pip install nvidia-cudnn-cu12==9.*",
  ],
  [
    "half a CUDA tree",
    { files: { [lib("libcufft.so.11")]: undefined, [lib("libcurand.so.10")]: undefined } },
    "libcurand.so.10: it is missing -> pip install nvidia-curand-cu12",
    "libcufft.so.11: it is missing -> pip install nvidia-cufft-cu12",
  ],
  [
    "a CUDA library for another processor",
    { files: { [lib("libcublas.so.12")]: elfLibrary([], other) } },
    new RegExp(
      `^libcublas.so.12: '.*libcublas.so.12': got a library for linux ${otherName} -> pip install nvidia-cublas-cu12$`,
    ),
  ],
  [
    "a library whose opening ends the process",
    { files: { [lib("libcudart.so.12")]: cutLibrary() } },
    /^libonnxruntime_providers_cuda.so: .*ends a process with SIG(BUS|SEGV) -> npm rebuild/,
    /^libcudart.so.12: .*ends a process with SIG(BUS|SEGV) -> pip install nvidia-cuda-runtime-cu12$/,
  ],
  [
    "a library that needs one that is missing",
    { files: { [lib("libcudnn.so.9")]: elfLibrary(["libnonesuch.so.3"]) } },
    /^libonnxruntime_providers_cuda.so: .*libnonesuch.so.3: cannot open shared object file.* -> npm rebuild/,
    /^libcudnn.so.9: .*libnonesuch.so.3: cannot open shared object file.* -> pip install nvidia-cudnn-cu12==9.\*$/,
  ],
  [
    "no TensorRT",
    { provider: "tensorrt", files: { [lib("libnvinfer.so.10")]: undefined } },
    "libnvinfer.so.10: it is missing -> pip install tensorrt==10.*",
  ],
];

const isLinux = process.platform === "linux" && ["x64", "arm64"].includes(process.arch);
const why = isLinux ? "" : " (skipped: this is not Linux on x64 or arm64)";

describe.skipIf(!isLinux)(`the doctor${why}`, () => {
  it("finds nothing wrong in a tree whose CUDA comes from Python's packages", async () => {
    expect(await wrongIn({ files: WHEEL_FILES })).toEqual([]);
    expect(await wrongIn({ files: WHEEL_FILES, provider: "tensorrt" })).toEqual([]);
    const { [`${PYTHON}/nvidia/cudnn/lib/libcudnn.so.9`]: _, ...withoutCudnn } = WHEEL_FILES;
    expect(await wrongIn({ files: withoutCudnn })).toEqual([
      "libcudnn.so.9: it is missing -> pip install nvidia-cudnn-cu12==9.*",
    ]);
    const cut = { ...WHEEL_FILES, [`${PYTHON}/nvidia/cufft/lib/libcufft.so.11`]: elfLibrary(["libno.so.1"]) };
    expect(await wrongIn({ files: cut })).toContainEqual(
      expect.stringMatching(/^libcufft.so.11: .*libno.so.1.* -> pip install nvidia-cufft-cu12$/),
    );
  });

  it("finds nothing wrong in a good tree", async () => {
    expect(await wrongIn({})).toEqual([]);
    expect(await wrongIn({ provider: "tensorrt" })).toEqual([]);
  });

  const rows = BROKEN.map(([what, tree, ...wrong]) => ({ what, tree, wrong }));
  it.each(rows)("names what is wrong and the command that mends it: $what", async ({ tree, wrong }) => {
    expect(await wrongIn(tree)).toEqual(
      wrong.map((one) => (typeof one === "string" ? one : expect.stringMatching(one))),
    );
  });
});
