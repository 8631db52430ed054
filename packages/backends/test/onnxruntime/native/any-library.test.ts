import { copyFile, mkdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { onnxruntime } from "@tritonjs/backends/onnxruntime";
import { Triton } from "@tritonjs/core";
import { requireKoffi } from "@tritonjs/core/internal";
import { repository as withRepository } from "@tritonjs/repository";
import { serviceOf } from "@tritonjs/server";
import koffi from "koffi";
import { describe, expect, it } from "vitest";
import { elfLibrary } from "../../../../../test/support/elf-library.js";
import { identityOnnx } from "../../../../../test/support/onnx-models.js";
import { outcomeOf } from "../../../../../test/support/outcome.js";
import { RepositoryOnDisk } from "../../../../../test/support/repository-on-disk.js";
import type { Koffi } from "../../../../core/src/optional-packages.js";
import { preloadCuda } from "../../../src/onnxruntime/native/cuda-libraries.js";
import { faultOfLibraryFile, foreignLibc } from "../../../src/onnxruntime/native/library-file.js";
import { ShapePrediction } from "../../../src/onnxruntime/native/native-values.js";
import { bindOrtApi, loadOrtApi } from "../../../src/onnxruntime/native/ort-c-api.js";
import {
  chooseLibrary,
  findLibraries,
  type LibraryPaths,
  pathsOfMachine,
  pythonFolders,
} from "../../../src/onnxruntime/native/ort-library.js";

const model = identityOnnx("FLOAT", ["n"]);

const lines: string[] = [];

const line = (text: unknown) => void lines.push(String(text));

const logger = { error: line, warn: line, info: line, debug: line };

/** The first bytes of a library for Linux on a processor. */
function elf(machine: number): Uint8Array {
  const bytes = new Uint8Array(4096);
  bytes.set([0x7f, 0x45, 0x4c, 0x46, 2, 1, 1]);
  new DataView(bytes.buffer).setUint16(18, machine, true);
  return bytes;
}

const ARM64 = 183;

const X64 = 62;

const otherMachine = process.arch === "x64" ? ARM64 : X64;

describe("a model with a library of its own", () => {
  it("runs on it, beside a model with another library in the same process", async () => {
    await using folder = await RepositoryOnDisk.create({});
    const other = join(folder.path, "libother.so");
    await copyFile(chooseLibrary().file, other);
    await using triton = new Triton({ logger });
    const bind = (modelName: string, library?: string) =>
      triton.bind({
        modelName,
        inferFunc: onnxruntime({ model, engine: "native", ...(library && { library }) }),
      });
    const handles = [bind("first"), bind("second", other)];
    const answers = await Promise.all(
      Array.from({ length: 20 }, (_, i) => handles[i % 2]!.infer({ x: Float32Array.of(i) })),
    );
    expect(answers.map(({ y }) => y!.data[0])).toEqual(Array.from({ length: 20 }, (_, i) => i));
    const details = handles.map((handle) => handle.instances()[0]!.details);
    expect(details.map(({ library }) => library)).toEqual([chooseLibrary().file, other]);
    for (const { onnxRuntime, engine } of details) {
      expect([engine, onnxRuntime]).toEqual(["native", expect.stringMatching(/^1\.\d+\.\d+$/)]);
    }
    expect(lines.join("\n")).toMatch(
      new RegExp(`model 'second': ONNX Runtime 1\\.\\d+\\.\\d+ of '${other}' \\(.*cpu; .*build type=`),
    );
  });

  it("takes the library from the settings of the backend, or from a parameter of the model", async () => {
    const { file } = chooseLibrary();
    const parameter = `parameters { key: "library" value: { string_value: "${file}" } }`;
    await using repository = await RepositoryOnDisk.create({
      "parameter/1/model.onnx": model,
      "parameter/config.pbtxt": `backend: "onnxruntime" ${parameter}`,
      "setting/1/model.onnx": model,
    });
    await using triton = new Triton({
      logger,
      extensions: [
        withRepository({
          modelRepository: repository.path,
          backendConfig: { onnxruntime: { library: "/nonesuch/libonnxruntime.so" } },
          exitOnError: false,
        }),
      ],
    });
    await triton.ready();
    const index = await serviceOf(triton).repositoryIndex(false);
    expect(index.map(({ name, state, reason }) => [name, state, reason])).toEqual([
      ["parameter", "READY", undefined],
      [
        "setting",
        "UNAVAILABLE",
        expect.stringContaining("cannot use '/nonesuch/libonnxruntime.so' as ONNX Runtime"),
      ],
    ]);
    expect((await triton.infer("parameter", { x: Float32Array.of(3) })).y!.data[0]).toBe(3);
  });

  it("is refused on the engine 'worker', which has only the library of onnxruntime-node", async () => {
    await using triton = new Triton({ logger });
    const inferFunc = onnxruntime({ model, engine: "worker", library: chooseLibrary().file });
    expect(await outcomeOf((async () => triton.bind({ modelName: "m", inferFunc }).ready())())).toBe(
      "INVALID_ARG options 'library' and 'providerLibraries': expected the engine 'native', got 'worker'",
    );
  });
});

describe("a file that is not a library of ONNX Runtime", () => {
  it.each([
    ["missing", undefined, "got no such file"],
    ["text", Buffer.from("no library"), "got a file that is not a library"],
    ["empty", Buffer.alloc(0), "got a file that is not a library"],
    [
      "other-processor",
      elf(otherMachine),
      `got a library for linux ${process.arch === "x64" ? "arm64" : "x64"}`,
    ],
    ["windows", peFile(), "got a library for win32 x64"],
    ["mac", Uint8Array.of(0xcf, 0xfa, 0xed, 0xfe, 0x0c, 0, 0, 1), "got a library for darwin arm64"],
  ])("is refused by name, and other models run: %s", async (name, bytes, got) => {
    await using folder = await RepositoryOnDisk.create({});
    const library = join(folder.path, `${name}.so`);
    if (bytes !== undefined) await writeFile(library, bytes);
    await using triton = new Triton({ logger });
    const good = triton.bind({ modelName: "good", inferFunc: onnxruntime({ model, engine: "native" }) });
    await good.ready();
    const bad = (async () =>
      triton.bind({ modelName: "bad", inferFunc: onnxruntime({ model, library }) }).ready())();
    expect(await outcomeOf(bad)).toBe(
      `UNAVAILABLE cannot use '${library}' as ONNX Runtime: expected a library for ${process.platform} ${process.arch} ` +
        `with version 16 or newer of its C interface, ${got}`,
    );
    expect((await good.infer({ x: Float32Array.of(5) })).y!.data[0]).toBe(5);
  });

  it("is refused with the words of the system's loader if that does not open it", () => {
    const cut = (file: string) => thrown(() => bindOrtApi(koffi as unknown as Koffi, file));
    const program = process.execPath;
    expect(cut(program)).toMatch(/got a library that does not open \(.+\)$/);
  });

  it.skipIf(process.platform !== "linux")(
    "is for musl: the engine that needs no library is offered",
    async () => {
      await using folder = await RepositoryOnDisk.create({});
      const forMusl = join(folder.path, "libonnxruntime.so.1");
      await writeFile(forMusl, elfLibrary(["libc.musl-x86_64.so.1"]));
      const { glibcVersionRuntime } = (
        process.report.getReport() as { header: { glibcVersionRuntime?: string } }
      ).header;
      const offer = "or the engine 'wasm', which needs no library";
      if (glibcVersionRuntime !== undefined) {
        const text = `got a library for musl, but this process has glibc; use a build for glibc, ${offer}`;
        expect(thrown(() => bindOrtApi(koffi as unknown as Koffi, forMusl))).toContain(text);
      }
      const forGlibc = join(folder.path, "libonnxruntime.so.2");
      await writeFile(forGlibc, elfLibrary(["libc.so.6"]));
      expect(foreignLibc(forGlibc, "musl")).toContain(`got a library for glibc, but this process has musl`);
      expect(foreignLibc(forGlibc, "glibc")).toBeUndefined();
      expect(foreignLibc(forMusl, "musl")).toBeUndefined();
      expect(foreignLibc(join(folder.path, "nonesuch"), "musl")).toBeUndefined();
    },
  );

  it("is another library: the function that it lacks is named", () => {
    const addon = koffiFile();
    expect(thrown(() => bindOrtApi(koffi as unknown as Koffi, addon))).toMatch(
      /got a library without the function OrtGetApiBase$/,
    );
  });
});

describe("a version of ONNX Runtime", () => {
  it.each([
    ["1.14.1", 1, "got ONNX Runtime 1.14.1, which is too old: it has version 14 of the interface"],
    ["1.99.0", 0, "got ONNX Runtime 1.99.0, which is too new: it no longer has version 16 of the interface"],
    ["2.0.0", 0, "got ONNX Runtime 2.0.0, which is too new: it no longer has version 16 of the interface"],
  ])("%s is refused by name if it lacks the C interface", (version, table, text) => {
    const { file } = chooseLibrary();
    const getVersion = koffi.register(() => version, koffi.pointer(koffi.proto("str", [])));
    const getApi = koffi.register(() => table, koffi.pointer(koffi.proto("uint64", ["uint32"])));
    const base = BigUint64Array.from([getApi, getVersion].map((at) => BigInt(koffi.address(at as never))));
    const facade = {
      ...koffi,
      load: () => ({ func: () => () => koffi.address(base) }),
    } as unknown as Koffi;
    expect(thrown(() => bindOrtApi(facade, file))).toContain(text);
    for (const one of [getVersion, getApi]) koffi.unregister(one);
  });
});

describe("the search for a library", () => {
  const places = (more: Partial<LibraryPaths>): LibraryPaths => ({
    platform: "linux",
    arch: "x64",
    env: {},
    packageFile: () => {
      throw new Error("Cannot find module");
    },
    systemFolders: [],
    pythonFolders: () => [],
    ...more,
  });

  it("goes from the environment to onnxruntime-node, the system and Python's packages", async () => {
    await using folder = await RepositoryOnDisk.create({});
    const at = (path: string) => join(folder.path, path);
    for (const file of [
      "env/libonnxruntime.so",
      "package/bin/napi-v6/linux/x64/libonnxruntime.so.1",
      "package/bin/napi-v6/linux/arm64/libonnxruntime.so.1",
      "system/libonnxruntime.so.1.21",
      "system/libonnxruntime_providers_dnnl.so",
      "system/libonnxruntime_providers_shared.so",
      "python/onnxruntime/capi/libonnxruntime.so.1.30.0",
      "python/onnxruntime/capi/libonnxruntime_providers_cuda.so",
    ]) {
      await mkdir(dirname(at(file)), { recursive: true });
      await writeFile(at(file), "");
    }
    const all = places({
      packageFile: () => at("package/package.json"),
      systemFolders: [at("nonesuch"), at("system")],
      pythonFolders: () => [at("python")],
    });
    expect([...findLibraries({ ...all, env: { ORT_DYLIB_PATH: at("env/libonnxruntime.so") } })]).toEqual([
      { file: at("env/libonnxruntime.so"), source: "the variable ORT_DYLIB_PATH", providerFiles: [] },
      {
        file: at("package/bin/napi-v6/linux/x64/libonnxruntime.so.1"),
        source: "onnxruntime-node",
        providerFiles: [],
      },
      { file: at("system/libonnxruntime.so.1.21"), source: "the system", providerFiles: ["dnnl"] },
      {
        file: at("python/onnxruntime/capi/libonnxruntime.so.1.30.0"),
        source: "Python's package onnxruntime",
        providerFiles: ["cuda"],
      },
    ]);
    expect(chooseLibrary(undefined, all).source).toBe("onnxruntime-node");
    expect(chooseLibrary("cuda", all).source).toBe("Python's package onnxruntime");
    expect(chooseLibrary("openvino", all).source).toBe("onnxruntime-node");
  });

  it("says where it looked if there is none", () => {
    expect(thrown(() => chooseLibrary(undefined, places({ arch: "s390x" })))).toMatch(
      /^cannot find ONNX Runtime's library: expected libonnxruntime.so.1 for linux s390x in onnxruntime-node, among .*, got none; install/,
    );
  });

  it("knows folders on every platform", () => {
    const { systemFolders, pythonFolders } = pathsOfMachine();
    expect(systemFolders.length).toBeGreaterThan(0);
    expect(Array.isArray(pythonFolders())).toBe(true);
    expect(faultOfLibraryFile("libonnxruntime.so.1")).toBeUndefined();
  });
});

function thrown(call: () => unknown): string {
  try {
    call();
  } catch (error) {
    return (error as Error).message;
  }
  return "nothing";
}

function koffiFile(): string {
  const libraries = process.report.getReport() as { sharedObjects?: readonly string[] };
  return libraries.sharedObjects!.find((file) => /koffi.*\.node$/.test(file))!;
}

function peFile(): Uint8Array {
  const bytes = new Uint8Array(512);
  const view = new DataView(bytes.buffer);
  view.setUint16(0, 0x4d5a);
  view.setUint32(0x3c, 0x80, true);
  view.setUint32(0x80, 0x50450000);
  view.setUint16(0x84, 0x8664, true);
  return bytes;
}

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
  const { file } = chooseLibrary(undefined, { ...pathsOfMachine(), env: {} });
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
      ...pathsOfMachine(),
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

describe("ONNX Runtime's C interface", () => {
  it("is that of the installed onnxruntime-node, loaded once", () => {
    const api = loadOrtApi();
    expect(api.version).toMatch(/^1\.\d+\.\d+$/);
    expect(loadOrtApi()).toBe(api);
  });

  it("reports an error with ONNX Runtime's words", () => {
    const api = loadOrtApi();
    expect(() => api.read((to) => api.createTensorAsOrtValue(api.allocator, 0, 0, 99, to))).toThrow(
      /not supported|NotImplemented|invalid/i,
    );
  });
});

describe("the shape of an output", () => {
  const tensor = (name: string, ...sizes: (number | string)[]) => ({
    name,
    elementType: 1,
    dims: sizes.map((size) => (typeof size === "number" ? size : -1)),
    dimNames: sizes.map((size) => (typeof size === "string" ? size : "")),
  });
  const shapes = new ShapePrediction([tensor("ids", "batch", "length"), tensor("mask", "batch", -1)]);
  const given: Readonly<Record<string, readonly number[]>> = { ids: [3, 7], mask: [3, 9] };
  const predict = (...sizes: (number | string)[]) =>
    shapes.predict(tensor("y", ...sizes), (name) => given[name]);

  it("follows from fixed dimensions and from names that an input has too", () => {
    expect(predict("batch", "length", 50)).toEqual([3, 7, 50]);
    expect(predict(2, 2)).toEqual([2, 2]);
  });

  it("is unknown for other names, nameless dimensions and an unknown rank", () => {
    expect(predict("batch", "found")).toBeUndefined();
    expect(predict("batch", -1)).toBeUndefined();
    expect(predict()).toBeUndefined();
    expect(shapes.predict(tensor("y", "length"), () => undefined)).toBeUndefined();
  });
});
