import type { DescribedLibrary } from "./native/diagnose-gpus.js";
import type { ExaminedMachine, GpuFinding } from "./native/gpu-doctor.js";

/*
 * What ONNX Runtime needs for GPUs on this machine. The code that looks is loaded when it is asked.
 */

/**
 * Examines what ONNX Runtime needs for NVIDIA's GPUs: looks at files, and then opens each library that was found in a
 * process of its own, so that a crash is an answer. Each thing that is wrong comes with the command that mends it.
 *
 * @param machine this machine by default
 * @example
 * ```ts
 * for (const { subject, isGood, text } of await diagnoseGpus()) console.log(isGood ? "ok" : "wrong", subject, text);
 * ```
 */
export async function diagnoseGpus(
  machine?: ExaminedMachine,
  provider: "cuda" | "tensorrt" = "cuda",
): Promise<GpuFinding[]> {
  const doctor = await import("./native/diagnose-gpus.js");
  return doctor.examineMachine(machine, provider);
}

/** Describes the libraries of ONNX Runtime on this machine, the preferred one first. Each is opened in a process. */
export async function describeLibraries(): Promise<readonly DescribedLibrary[]> {
  const doctor = await import("./native/diagnose-gpus.js");
  return doctor.libraryDescriptions();
}

/** True for a machine without anything of NVIDIA, where a GPU is not expected. */
export function hasNothingOfNvidia(findings: readonly GpuFinding[]): boolean {
  return findings.every(
    ({ subject, isGood }) => !isGood || !/^(driver|device files|libcuda|libnvidia)/.test(subject),
  );
}
