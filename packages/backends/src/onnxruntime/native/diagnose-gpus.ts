import { spawn } from "node:child_process";
import { once } from "node:events";
import { basename } from "node:path";
import { fileURLToPath } from "node:url";
import { findInstalled } from "@tritonjs/core/internal";
import { ConcurrencyGate } from "@tritonjs/protocol";
import { isOfCuda } from "./cuda-libraries.js";
import { type ExaminedMachine, examineGpus, fixOf, type GpuFinding, thisMachine } from "./gpu-doctor.js";
import { findLibraries } from "./ort-library.js";

/** Examines files, and then opens each library that was found in a process of its own. */
export async function examineMachine(
  machine?: ExaminedMachine,
  provider: "cuda" | "tensorrt" = "cuda",
): Promise<GpuFinding[]> {
  const examined = machine ?? thisMachine(provider);
  const findings = examineGpus(examined, provider);
  if (findInstalled("koffi", import.meta.url) === undefined) {
    const text = "it is not installed, so no library can be opened";
    return [...findings, { subject: "koffi", isGood: false, text, fix: "npm install koffi" }];
  }
  const lane = new ConcurrencyGate(AT_A_TIME, Number.POSITIVE_INFINITY);
  const opened = await Promise.all(
    findings.map((finding) => lane.run(() => openedFinding(finding, findings, examined), undefined)),
  );
  if (machine !== undefined || examined.library === undefined || opened.some(({ isGood }) => !isGood)) {
    return opened;
  }
  const subject = `a session with ${provider}`;
  const fault = await runProgram(["session", examined.library, provider], examined.env);
  opened.push(
    fault === undefined
      ? { subject, isGood: true, text: "it opens" }
      : { subject, isGood: false, text: fault, fix: fixOf(`libonnxruntime_providers_${provider}.so`, false) },
  );
  return opened;
}

/** Number of processes that open libraries at a time. */
const AT_A_TIME = 4;

/** A good finding of a library, or what happens when the library is opened. */
async function openedFinding(
  finding: GpuFinding,
  findings: readonly GpuFinding[],
  { env, library }: ExaminedMachine,
): Promise<GpuFinding> {
  const { isGood, text: file } = finding;
  if (!isGood || !/\.so(\.[\d.]+)?$/.test(file)) return finding;
  const name = basename(file);
  const isProvider = /^libonnxruntime_providers_(?!shared)/.test(name);
  // Missing libraries are findings of their own.
  if (isProvider && findings.some((one) => !one.isGood && /\.so/.test(one.subject))) return finding;
  const shared = findings.find((one) => one.isGood && one.subject === "libonnxruntime_providers_shared.so");
  // Those of Python's packages are found only once they are loaded.
  const cuda = findings.filter((one) => one.isGood && isOfCuda(one.subject)).map(({ text }) => text);
  const before = isProvider && shared !== undefined ? [shared.text, ...cuda] : [];
  const fault = await runProgram(["open", file, ...before], env);
  if (fault === undefined) return finding;
  const fix = file === library ? fixOf("ONNX Runtime", false) : fixOf(name, false);
  return { subject: finding.subject, isGood: false, text: `'${file}': ${fault}`, fix };
}

/** Longest time that a library may take to open. */
const WITHIN_MS = 30_000;

/** Runs the program that opens a library. Returns what is wrong, undefined if nothing is. */
async function runProgram(
  args: readonly string[],
  env: Readonly<Record<string, string | undefined>>,
): Promise<string | undefined> {
  const { fault } = await outputOf(args, env);
  return fault;
}

async function outputOf(
  args: readonly string[],
  env: Readonly<Record<string, string | undefined>>,
): Promise<{ readonly fault: string | undefined; readonly output: string }> {
  const program = fileURLToPath(new URL("./gpu-doctor-program.js", import.meta.url));
  const child = spawn(process.execPath, [program, ...args], {
    env: { ...env },
    stdio: ["ignore", "pipe", "ignore"],
    timeout: WITHIN_MS,
    killSignal: "SIGKILL",
  });
  let output = "";
  child.stdout.setEncoding("utf8").on("data", (part: string) => {
    output += part;
  });
  const [code, signal] = (await once(child, "close")) as [number | null, string | null];
  const fault =
    signal === "SIGKILL"
      ? `opening it took longer than ${WITHIN_MS / 1000} seconds`
      : signal !== null
        ? `opening it ends a process with ${signal}`
        : code === 0
          ? undefined
          : output || `opening it ends a process with exit code ${code}`;
  return { fault, output };
}

/** A library of ONNX Runtime on this machine: what it is, or why it cannot be used. */
export interface DescribedLibrary {
  readonly file: string;
  /** Where it belongs to: `onnxruntime-node`, `the system`. */
  readonly source: string;
  readonly version?: string;
  readonly build?: string;
  /** Execution providers that it knows. The file of one may be missing. */
  readonly providers?: readonly string[];
  readonly fault?: string;
}

/** Opens each library in a process of its own. */
export async function libraryDescriptions(): Promise<readonly DescribedLibrary[]> {
  const described: DescribedLibrary[] = [];
  for (const { file, source } of findLibraries()) {
    const { fault, output } = await outputOf(["describe", file], process.env);
    described.push(fault === undefined ? { file, source, ...JSON.parse(output) } : { file, source, fault });
  }
  return described;
}
