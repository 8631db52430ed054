import { copyFile, mkdir } from "node:fs/promises";
import { dirname, join } from "node:path";
import { requireKoffi } from "@tritonjs/core/internal";
import { describe, expect, it } from "vitest";
import { elfLibrary } from "../../../../../test/support/elf-library.js";
import { RepositoryOnDisk } from "../../../../../test/support/repository-on-disk.js";
import { preloadCuda } from "../../../src/onnxruntime/cuda-libraries.js";
import { bindOrtApi } from "../../../src/onnxruntime/ort-c-api.js";
import {
  chooseLibrary,
  findLibraries,
  placesOfMachine,
  pythonFolders,
} from "../../../src/onnxruntime/ort-library.js";

/*
 * A tree as `pip install onnxruntime-gpu[cuda,cudnn]` makes it in a virtual environment, with the real library of ONNX
 * Runtime of this machine. The providers and CUDA's libraries are libraries without code.
 */

const SITE = "lib/python3.12/site-packages";
const NEEDED = ["libcublasLt.so.12", "libcublas.so.12", "libcudnn.so.9", "libtritonjs-nothing.so.1"];
const WHEELS = {
  "nvidia/cublas/lib": ["libcublasLt.so.12", "libcublas.so.12"],
  "nvidia/cudnn/lib": ["libcudnn.so.9"],
};

async function wheel(): Promise<RepositoryOnDisk> {
  const capi = `${SITE}/onnxruntime/capi`;
  const folder = await RepositoryOnDisk.create({
    [`${capi}/__init__.py`]: "",
    [`${capi}/onnxruntime_pybind11_state.cpython-312-x86_64-linux-gnu.so`]: elfLibrary(),
    [`${capi}/libonnxruntime_providers_shared.so`]: elfLibrary(),
    [`${capi}/libonnxruntime_providers_cuda.so`]: elfLibrary(NEEDED),
    [`${capi}/libonnxruntime_providers_tensorrt.so`]: elfLibrary(),
    ...Object.fromEntries(
      Object.entries(WHEELS).flatMap(([where, names]) =>
        names.map((name) => [`${SITE}/${where}/${name}`, elfLibrary([], undefined, name)]),
      ),
    ),
  });
  const { file } = chooseLibrary(undefined, { ...placesOfMachine(), env: {} });
  const copy = join(folder.path, capi, "libonnxruntime.so.1.23.2");
  await mkdir(dirname(copy), { recursive: true });
  await copyFile(file, copy);
  return folder;
}

const isLinux = process.platform === "linux" && ["x64", "arm64"].includes(process.arch);

describe.skipIf(!isLinux)("Python's package of ONNX Runtime for GPUs", () => {
  it("is found in the active environment, chosen for its providers, and runs", async () => {
    await using folder = await wheel();
    const env = { VIRTUAL_ENV: folder.path };
    const places = {
      ...placesOfMachine(),
      env,
      systemFolders: [],
      pythonFolders: () => pythonFolders(env),
    };
    const expected = {
      file: join(folder.path, SITE, "onnxruntime/capi/libonnxruntime.so.1.23.2"),
      source: "Python's package onnxruntime",
      providerFiles: ["cuda", "tensorrt"],
    };
    expect([...findLibraries(places)]).toContainEqual(expected);
    // onnxruntime-node comes first, but has no files of these providers on this machine.
    if (!chooseLibrary().providerFiles.includes("cuda"))
      expect(chooseLibrary("cuda", places)).toEqual(expected);
    const api = bindOrtApi(requireKoffi(), expected.file);
    expect(api.providers).toContain("CPUExecutionProvider");
  });

  it("gets the libraries of CUDA that only Python's packages have, before its provider is opened", async () => {
    await using folder = await wheel();
    const library = join(folder.path, SITE, "onnxruntime/capi/libonnxruntime.so.1.23.2");
    const opened: string[] = [];
    const koffi = requireKoffi();
    const load: typeof koffi.load = (name, options) => {
      opened.push(name!.slice(folder.path.length + 1));
      return koffi.load(name, options);
    };
    const env = { VIRTUAL_ENV: folder.path };
    preloadCuda({ load }, library, "cuda", env);
    expect(opened).toEqual([
      `${SITE}/nvidia/cublas/lib/libcublasLt.so.12`,
      `${SITE}/nvidia/cublas/lib/libcublas.so.12`,
      `${SITE}/nvidia/cudnn/lib/libcudnn.so.9`,
    ]);
    // Once in a process.
    preloadCuda({ load }, library, "cuda", env);
    expect(opened).toHaveLength(3);
  });

  it("is left alone if its provider or NVIDIA's packages are missing", async () => {
    await using folder = await wheel();
    const none = () => {
      throw new Error("nothing is to be loaded");
    };
    preloadCuda({ load: none }, join(folder.path, "nonesuch.so"), "cuda", {});
    preloadCuda({ load: none }, join(folder.path, SITE, "onnxruntime/capi/x.so"), "tensorrt", {});
  });
});
