import { spawnSync } from "node:child_process";

const python = process.env.TRITONJS_PYTHON ?? "python3";

/** Whether there is a Python with numpy, which Python models need. */
export const hasPython = spawnSync(python, ["-c", "import numpy"], { stdio: "ignore" }).status === 0;

/** Path of the program. */
export const pythonProgram = String(
  spawnSync(python, ["-c", "import sys; print(sys.executable)"], { encoding: "utf8" }).stdout ?? "",
).trim();

/** Backend settings for tests: many interpreters may start at once on a busy machine. */
export const patientPython = { python: { "stub-timeout-seconds": "600" } };

/** The same for `tritonjs serve`. */
export const patientPythonOption = "--backend-config=python,stub-timeout-seconds=600";

const findTorch = "import importlib.util, sys; sys.exit(importlib.util.find_spec('torch') is None)";

/** Whether this Python also has torch, which TorchScript models need. */
export const hasTorch = hasPython && spawnSync(python, ["-c", findTorch], { stdio: "ignore" }).status === 0;

/** Suffix for the names of tests that need torch. */
export const withoutTorch = hasTorch ? "" : ` (skipped: ${pythonProgram || python} has no torch)`;

/** Suffix for the names of tests that need Python: it says that they are skipped. */
export const withoutPython = hasPython ? "" : ` (skipped: there is no ${python} with numpy)`;
