import { readdirSync, realpathSync } from "node:fs";
import { homedir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { unbundledRequire } from "@tritonjs/core/internal/worker";
import { errorFor } from "@tritonjs/protocol";

/** A library of ONNX Runtime that the search has found. It was not opened. */
interface FoundLibrary {
  readonly file: string;
  /** Where it belongs to, for texts: `onnxruntime-node`, `the system`. */
  readonly source: string;
  /** Execution providers whose files lie beside it: `cuda`, `tensorrt`, `dnnl`. Others are built in. */
  readonly providerFiles: readonly string[];
}

/** Where the search looks, in its order. Tests give other paths. */
export interface LibraryPaths {
  readonly platform: string;
  readonly arch: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Path of the file `package.json` of onnxruntime-node. @throws Error if it is not installed */
  readonly packageFile: () => string;
  /** Folders of the system's libraries. */
  readonly systemFolders: readonly string[];
  /** Folders of Python's packages. */
  readonly pythonFolders: () => readonly string[];
}

/** The environment variable that names the library, as other bindings of ONNX Runtime read it. */
const LIBRARY_VARIABLE = "ORT_DYLIB_PATH";

export function pathsOfMachine(): LibraryPaths {
  const { env, platform, arch } = process;
  return {
    platform,
    arch,
    env,
    packageFile: () => unbundledRequire(import.meta.url).resolve("onnxruntime-node/package.json"),
    systemFolders: systemFolders(platform, arch, env),
    pythonFolders: () => pythonFolders(env),
  };
}

/** Libraries of ONNX Runtime on this machine, the preferred one first. None is opened. */
export function* findLibraries(paths: LibraryPaths = pathsOfMachine()): Generator<FoundLibrary> {
  const seen = new Set<string>();
  for (const { file, source } of candidates(paths)) {
    const real = realPath(file);
    if (seen.has(real)) continue;
    seen.add(real);
    yield { file, source, providerFiles: providerFiles(dirname(real)) };
  }
}

function* candidates(paths: LibraryPaths): Generator<Pick<FoundLibrary, "file" | "source">> {
  const named = paths.env[LIBRARY_VARIABLE];
  if (named) yield { file: named, source: `the variable ${LIBRARY_VARIABLE}` };
  yield* ofNodePackage(paths);
  for (const folder of paths.systemFolders) yield* librariesIn(folder, paths, "the system");
  for (const folder of paths.pythonFolders()) {
    yield* librariesIn(join(folder, "onnxruntime", "capi"), paths, "Python's package onnxruntime");
  }
}

/**
 * The library for models that name none: the one of the environment, or the first that has the files of the wanted
 * provider, or else the first.
 *
 * @param provider a provider of ONNX Runtime that comes as a file of its own
 * @throws TritonError UNAVAILABLE if there is no library; the text names the paths
 */
export function chooseLibrary(provider?: string, paths: LibraryPaths = pathsOfMachine()): FoundLibrary {
  let first: FoundLibrary | undefined;
  for (const found of findLibraries(paths)) {
    if (provider === undefined || paths.env[LIBRARY_VARIABLE]) return found;
    if (found.providerFiles.includes(provider)) return found;
    first ??= found;
  }
  if (first !== undefined) return first;
  const { platform, arch } = paths;
  const text =
    `cannot find ONNX Runtime's library: expected ${NAMES[platform] ?? "a library"} for ${platform} ${arch} in ` +
    "onnxruntime-node, among the system's libraries or in Python's package onnxruntime, got none; install " +
    `onnxruntime-node next to @tritonjs/backends, or name a library with the option 'library' or the variable ${LIBRARY_VARIABLE}`;
  throw errorFor("PACKAGE_NOT_INSTALLED", text);
}

/** Names of ONNX Runtime's library by platform: the name that the binding of onnxruntime-node links to. */
const NAMES: Readonly<Record<string, string>> = {
  linux: "libonnxruntime.so.1",
  darwin: "libonnxruntime.1.dylib",
  win32: "onnxruntime.dll",
};

/** Names that packages give the library. */
const PATTERNS: Readonly<Record<string, RegExp>> = {
  linux: /^libonnxruntime\.so(\.\d+)*$/,
  darwin: /^libonnxruntime(\.\d+)*\.dylib$/,
  win32: /^onnxruntime\.dll$/,
};

/** Both engines use the file of onnxruntime-node, so a process has it in memory once. */
function ofNodePackage({ platform, arch, packageFile }: LibraryPaths) {
  let bin: string;
  try {
    bin = join(dirname(packageFile()), "bin");
  } catch {
    return [];
  }
  return folderEntries(bin)
    .map((binding) => join(bin, binding, platform, arch))
    .flatMap((folder) =>
      folderEntries(folder).flatMap((name) => (name === NAMES[platform] ? [join(folder, name)] : [])),
    )
    .map((file) => ({ file, source: "onnxruntime-node" }));
}

/** The libraries of a folder: each file once, by its shortest name. */
function librariesIn(folder: string, { platform }: LibraryPaths, source: string) {
  return folderEntries(folder)
    .filter((name) => PATTERNS[platform]?.test(name))
    .sort((a, b) => a.length - b.length)
    .map((name) => ({ file: join(folder, name), source }));
}

const PROVIDER_FILE = /^(?:lib)?onnxruntime_providers_(\w+)\.(?:so|dll|dylib)$/;

function providerFiles(folder: string): readonly string[] {
  return folderEntries(folder).flatMap((name) => {
    const provider = PROVIDER_FILE.exec(name)?.[1];
    return provider === undefined || provider === "shared" ? [] : [provider];
  });
}

/** Debian's names of processors, in the folders of libraries. */
const TRIPLETS: Readonly<Record<string, string>> = {
  x64: "x86_64-linux-gnu",
  arm64: "aarch64-linux-gnu",
  arm: "arm-linux-gnueabihf",
  ppc64: "powerpc64le-linux-gnu",
  riscv64: "riscv64-linux-gnu",
  s390x: "s390x-linux-gnu",
};

export function systemFolders(
  platform: string,
  arch: string,
  env: Readonly<Record<string, string | undefined>>,
): readonly string[] {
  if (platform === "win32") return (env.PATH ?? "").split(delimiter).filter((folder) => folder !== "");
  const variable = platform === "darwin" ? "DYLD_LIBRARY_PATH" : "LD_LIBRARY_PATH";
  const listed = (env[variable] ?? "").split(delimiter).filter((folder) => folder !== "");
  if (platform === "darwin") return [...listed, "/opt/homebrew/lib", "/usr/local/lib"];
  const triplet = TRIPLETS[arch];
  return [
    ...listed,
    "/usr/local/lib",
    ...(triplet === undefined ? [] : [`/usr/lib/${triplet}`]),
    "/usr/lib64",
    "/usr/lib",
    "/opt/onnxruntime/lib",
    // The image of tritonserver.
    "/opt/tritonserver/backends/onnxruntime",
  ];
}

/** Folders of Python's packages: of the active environment, of the Pythons on the path, of the user and the system. */
export function pythonFolders(env: Readonly<Record<string, string | undefined>>): readonly string[] {
  const roots = [env.VIRTUAL_ENV, env.CONDA_PREFIX].filter((one) => one !== undefined && one !== "");
  const onPath = (env.PATH ?? "")
    .split(delimiter)
    .filter(
      (folder) => folder !== "" && folderEntries(folder).some((name) => /^python3?(\.exe)?$/.test(name)),
    )
    .map((folder) => dirname(realPath(folder)));
  const libs = [...roots, ...onPath, join(homedir(), ".local"), "/usr/local", "/usr"].flatMap((root) => [
    ...folderEntries(join(root!, "lib"))
      .filter((name) => /^python3(\.\d+)?$/.test(name))
      .flatMap((name) =>
        ["site-packages", "dist-packages"].map((folder) => join(root!, "lib", name, folder)),
      ),
    join(root!, "Lib", "site-packages"),
  ]);
  return [...new Set(libs)];
}

export function folderEntries(folder: string): readonly string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}

function realPath(file: string): string {
  try {
    return realpathSync(file);
  } catch {
    return file;
  }
}
