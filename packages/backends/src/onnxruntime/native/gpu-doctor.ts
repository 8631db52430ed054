import { accessSync, constants, existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { CUDA_PACKAGES, cudaFoldersOf, isOfCuda } from "./cuda-libraries.js";
import { faultOfLibraryFile, neededLibraries } from "./library-file.js";
import { chooseLibrary, folderEntries, pythonFolders, systemFolders } from "./ort-library.js";

/** One thing that an NVIDIA GPU needs, and whether it is there. */
export interface GpuFinding {
  /** Part that was examined: `driver`, `libcudnn.so.9`. */
  readonly subject: string;
  readonly isGood: boolean;
  /** Finding, or the fault. */
  readonly text: string;
  /** The one command that mends it. */
  readonly fix?: string;
}

/** The machine that is examined. Tests give trees of files. */
export interface ExaminedMachine {
  /** Folder that stands for `/`. */
  readonly root: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly platform: string;
  readonly arch: string;
  /** Library of ONNX Runtime; undefined if there is none. */
  readonly library: string | undefined;
}

export function thisMachine(provider = "cuda"): ExaminedMachine {
  let library: string | undefined;
  try {
    library = chooseLibrary(provider).file;
  } catch {
    // A finding says so.
  }
  const { env, platform, arch } = process;
  return { root: "/", env, platform, arch, library };
}

/**
 * Looks at what a provider for NVIDIA's GPUs needs, in the order in which it needs it: driver, device files,
 * permissions, libraries of the driver, ONNX Runtime with its provider, and the libraries of CUDA. Only files are read:
 * nothing is opened.
 */
export function examineGpus(machine: ExaminedMachine, provider: "cuda" | "tensorrt" = "cuda"): GpuFinding[] {
  if (machine.platform !== "linux") {
    const text = `expected Linux, got ${machine.platform}: nothing else is known here`;
    return [{ subject: "platform", isGood: false, text }];
  }
  const libraries = findLibraryFolders(machine);
  const container = isContainer(machine);
  return [
    examineDriver(machine, container),
    ...examineDevices(machine, container),
    ...examineVisibility(machine),
    ...examineDriverLibraries(machine, libraries, container),
    ...examineProvider(machine, libraries, provider),
  ];
}

/** The first finding that is wrong, in a few words, for a warning. Undefined if files show nothing wrong. */
function shortDiagnosis(provider: string, library: string | undefined): string | undefined {
  if (provider !== "cuda" && provider !== "tensorrt") return undefined;
  const machine = thisMachine(provider);
  const wrong = examineGpus({ ...machine, library: library ?? machine.library }, provider).find(
    ({ isGood }) => !isGood,
  );
  if (wrong === undefined) return undefined;
  return `${wrong.subject}: ${wrong.text}${wrong.fix === undefined ? "" : `; ${wrong.fix}`}`;
}

/** Advice about a provider that cannot be used, for the end of a warning; empty if files show nothing wrong. */
export function advice(provider: string, library: string | undefined): string {
  const short = shortDiagnosis(provider, library);
  return short === undefined ? "" : ` (${short}; 'tritonjs doctor' says more)`;
}

/** The first versions of the driver that run programs of a version of CUDA. */
const DRIVERS: Readonly<Record<string, readonly [number, number]>> = {
  "11": [450, 80],
  "12": [525, 60],
  "13": [580, 65],
};

function driverVersion({ root }: ExaminedMachine): readonly [number, number] | undefined {
  const text = read(join(root, "proc/driver/nvidia/version"));
  const [, major, minor] = /Kernel Module\D*?(\d+)\.(\d+)/.exec(text ?? "") ?? [];
  return major === undefined ? undefined : [Number(major), Number(minor)];
}

const RUN_WITH_GPUS = "docker run --gpus all ...";

function examineDriver(machine: ExaminedMachine, container: boolean): GpuFinding {
  const version = driverVersion(machine);
  if (version !== undefined) {
    return { subject: "driver", isGood: true, text: `NVIDIA's kernel module ${version.join(".")}` };
  }
  return container
    ? {
        subject: "driver",
        isGood: false,
        text: "the container sees no NVIDIA driver: it was started without GPUs, or its host has none",
        fix: RUN_WITH_GPUS,
      }
    : {
        subject: "driver",
        isGood: false,
        text: "NVIDIA's kernel module is not loaded",
        fix: "sudo apt install nvidia-driver && sudo reboot",
      };
}

function examineDevices({ root }: ExaminedMachine, container: boolean): GpuFinding[] {
  const names = folderEntries(join(root, "dev"));
  const gpus = names.filter((name) => /^nvidia\d+$/.test(name));
  const needed = [...(gpus.length === 0 ? ["nvidia0"] : gpus), "nvidiactl", "nvidia-uvm"];
  const missing = needed.filter((name) => !names.includes(name));
  if (missing.length > 0) {
    return [
      {
        subject: "device files",
        isGood: false,
        text: `${missing.map((name) => `/dev/${name}`).join(", ")} ${missing.length === 1 ? "is" : "are"} missing`,
        fix: container ? RUN_WITH_GPUS : "sudo nvidia-modprobe -u -c 0",
      },
    ];
  }
  const closed = needed.filter((name) => !isOpenTo(join(root, "dev", name)));
  if (closed.length > 0) {
    return [
      {
        subject: "permissions",
        isGood: false,
        text: `this user may not read and write ${closed.map((name) => `/dev/${name}`).join(", ")}`,
        fix: 'sudo usermod -aG video "$USER", then log in again',
      },
    ];
  }
  return [{ subject: "device files", isGood: true, text: gpus.map((name) => `/dev/${name}`).join(", ") }];
}

function examineVisibility({ env }: ExaminedMachine): GpuFinding[] {
  const chosen = env.CUDA_VISIBLE_DEVICES ?? (env.NVIDIA_VISIBLE_DEVICES === "void" ? "" : undefined);
  if (chosen === undefined || !/^\s*(-1.*)?$/.test(chosen)) return [];
  const name = env.CUDA_VISIBLE_DEVICES === undefined ? "NVIDIA_VISIBLE_DEVICES" : "CUDA_VISIBLE_DEVICES";
  return [
    {
      subject: name,
      isGood: false,
      text: `its value '${env[name] ?? ""}' hides all GPUs`,
      fix: `unset ${name}`,
    },
  ];
}

/** The driver's libraries, with the capability of NVIDIA's container runtime that brings each. */
const DRIVER_LIBRARIES = [
  ["libcuda.so.1", "compute"],
  ["libnvidia-ml.so.1", "utility"],
] as const;

function examineDriverLibraries(
  machine: ExaminedMachine,
  folders: readonly string[],
  container: boolean,
): GpuFinding[] {
  return DRIVER_LIBRARIES.map(([name]) => {
    const finding = examineLibrary(name, folders, machine);
    if (finding.isGood) {
      const [found] = /\d+\.\d+(\.\d+)?$/.exec(realNameOf(name, folders) ?? "") ?? [];
      const module = driverVersion(machine);
      if (found === undefined || module === undefined || found.startsWith(`${module.join(".")}`))
        return finding;
      return {
        subject: name,
        isGood: false,
        text: `it is of driver ${found}, but the loaded kernel module is ${module.join(".")}`,
        fix: container ? "restart the container after the driver's update" : "sudo reboot",
      };
    }
    return { ...finding, fix: fixOf(name, container) };
  });
}

/** Name of the file next to a library that has the driver's version: `libcuda.so.580.159.04`. */
function realNameOf(name: string, folders: readonly string[]): string | undefined {
  const stem = name.replace(/\.\d+$/, "");
  for (const folder of folders) {
    const names = folderEntries(folder);
    if (names.includes(name))
      return names.find((one) => one.startsWith(`${stem}.`) && /\.\d{3}\.\d+/.test(one));
  }
  return undefined;
}

/**
 * The command that installs a library.
 *
 * @param name its file, or `ONNX Runtime`
 */
export function fixOf(name: string, container: boolean): string {
  if (name === "ONNX Runtime") return "npm install onnxruntime-node";
  if (name.startsWith("libonnxruntime"))
    return "npm rebuild onnxruntime-node (or: pip install onnxruntime-gpu)";
  const driver = DRIVER_LIBRARIES.find(([one]) => name.startsWith(one));
  if (driver !== undefined) {
    return container
      ? `docker run --gpus all -e NVIDIA_DRIVER_CAPABILITIES=compute,utility ... (it lacks '${driver[1]}')`
      : "sudo apt install --reinstall libcuda1 libnvidia-ml1";
  }
  const known = CUDA_PACKAGES.find(([pattern]) => pattern.test(name));
  return known === undefined ? "reinstall its package" : known[1](name);
}

function examineProvider(
  machine: ExaminedMachine,
  folders: readonly string[],
  provider: "cuda" | "tensorrt",
): GpuFinding[] {
  const { library } = machine;
  if (library === undefined) {
    const text = "no library was found";
    return [{ subject: "ONNX Runtime", isGood: false, text, fix: fixOf("ONNX Runtime", false) }];
  }
  const fault = faultOfLibraryFile(library, machine);
  if (fault !== undefined) {
    const text = `'${library}': ${fault}`;
    return [{ subject: "ONNX Runtime", isGood: false, text, fix: fixOf("ONNX Runtime", false) }];
  }
  const findings: GpuFinding[] = [{ subject: "ONNX Runtime", isGood: true, text: library }];
  const needed = new Set<string>();
  for (const name of ["libonnxruntime_providers_shared.so", `libonnxruntime_providers_${provider}.so`]) {
    const finding = examineLibrary(name, [dirname(library)], machine);
    findings.push(finding.isGood ? finding : { ...finding, fix: fixOf(name, false) });
    if (finding.isGood) for (const one of neededLibraries(finding.text)) needed.add(one);
  }
  for (const name of needed) {
    if (!isOfCuda(name)) continue;
    const finding = examineLibrary(name, folders, machine);
    findings.push(finding.isGood ? finding : { ...finding, fix: fixOf(name, false) });
  }
  return [...findings, ...examineDriverAge(machine, [...needed])];
}

function examineDriverAge(machine: ExaminedMachine, needed: readonly string[]): GpuFinding[] {
  const cuda = needed.map((name) => /^lib(?:cudart|cublas)\w*\.so\.(\d+)/.exec(name)?.[1]).find((one) => one);
  const least = cuda === undefined ? undefined : DRIVERS[cuda];
  const version = driverVersion(machine);
  if (least === undefined || version === undefined) return [];
  if (version[0] > least[0] || (version[0] === least[0] && version[1] >= least[1])) return [];
  return [
    {
      subject: "driver",
      isGood: false,
      text: `version ${version.join(".")} is too old: CUDA ${cuda} needs ${least.join(".")} or newer`,
      fix: "sudo apt install nvidia-driver && sudo reboot",
    },
  ];
}

/** Looks for a library by the name that the loader looks for. The text of a good finding is its path. */
function examineLibrary(name: string, folders: readonly string[], machine: ExaminedMachine): GpuFinding {
  const folder = folders.find((one) => existsSync(join(one, name)));
  if (folder === undefined) {
    const stem = name.replace(/\.so.*$/, ".so");
    const others = [...new Set(folders.flatMap(folderEntries))].filter((one) => one.startsWith(`${stem}.`));
    const text = others.length === 0 ? "it is missing" : `it is missing; found ${others.join(", ")}`;
    return { subject: name, isGood: false, text };
  }
  const file = join(folder, name);
  const fault = faultOfLibraryFile(file, machine);
  return fault === undefined
    ? { subject: name, isGood: true, text: file }
    : { subject: name, isGood: false, text: `'${file}': ${fault}` };
}

/** Folders in which the loader, and ONNX Runtime's packages for Python, find libraries. */
function findLibraryFolders({ root, env, platform, arch }: ExaminedMachine): readonly string[] {
  const inRoot = (folder: string) => (root === "/" || folder.startsWith(root) ? folder : join(root, folder));
  const python = cudaFoldersOf(
    root === "/" ? pythonFolders(env) : [join(root, "usr/lib/python3/site-packages")],
  );
  return [
    ...systemFolders(platform, arch, env),
    "/usr/local/nvidia/lib64",
    "/usr/local/cuda/lib64",
    "/usr/local/cuda/compat",
    ...python,
  ].map(inRoot);
}

function isContainer({ root, env }: ExaminedMachine): boolean {
  return (
    existsSync(join(root, ".dockerenv")) ||
    existsSync(join(root, "run/.containerenv")) ||
    env.KUBERNETES_SERVICE_HOST !== undefined
  );
}

function isOpenTo(file: string): boolean {
  try {
    accessSync(file, constants.R_OK | constants.W_OK);
    return true;
  } catch {
    return false;
  }
}

function read(file: string): string | undefined {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return undefined;
  }
}
