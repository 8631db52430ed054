import { mkdir, mkdtemp, readdir, readFile, readlink, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { python } from "@tritonjs/backends/python";
import { Triton } from "@tritonjs/core";
import { describe, expect, it, onTestFinished } from "vitest";
import { irisModel } from "../support/iris.js";
import { Program } from "../support/program.js";
import { hasPython, withoutPython } from "../support/python.js";
import { repositoryRoot } from "../support/repository.js";
import { RepositoryOnDisk } from "../support/repository-on-disk.js";

const note = process.platform === "linux" ? "" : " (skipped: it reads Linux's /proc)";
const program = fileURLToPath(new URL("./support/onnx-program.mjs", import.meta.url));

/** Variables of build machines. ONNX Runtime sends no telemetry where one of them is set, so that no test could fail. */
const BUILD_MACHINE = Object.fromEntries(
  [
    "CI",
    "TF_BUILD",
    "GITHUB_ACTIONS",
    "GITLAB_CI",
    "CIRCLECI",
    "TRAVIS",
    "JENKINS_URL",
    "CODEBUILD_BUILD_ID",
    "BUILDKITE",
    "TEAMCITY_VERSION",
    "APPVEYOR",
    "BITBUCKET_BUILD_NUMBER",
  ].map((name) => [name, undefined]),
);

/** Runs a program that keeps all files below an empty folder, until it has written `text`. */
async function run(args: readonly string[], text: string, more: NodeJS.ProcessEnv) {
  const folder = await mkdtemp(join(tmpdir(), "tritonjs-telemetry-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  const at = (name: string) => join(folder, name);
  for (const name of ["home", "cache", "tmp"]) await mkdir(at(name));
  const env = {
    ...BUILD_MACHINE,
    HOME: at("home"),
    XDG_CACHE_HOME: at("cache"),
    TMPDIR: at("tmp"),
    ORT_DISABLE_TELEMETRY: undefined,
  };
  const started = new Program(process.execPath, args, {
    cwd: folder,
    env: { ...env, ...more },
    detached: true,
  });
  // The folder is removed after this, when none of the program's processes writes into it any more.
  onTestFinished(async () => {
    started.signalGroup("SIGKILL");
    await started.ended;
  });
  const output = await started.untilOutput(text, text.startsWith("Started") ? "stderr" : "stdout");
  return { folder, pid: Number(/ran in (\d+)\./.exec(output)?.[1] ?? started.pid) };
}

/** Files below the folder that Node itself does not make. */
async function filesBelow(folder: string): Promise<string[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  return entries
    .filter((entry) => entry.isFile())
    .map((entry) => relative(folder, join(entry.parentPath, entry.name)));
}

/** Files that a process has open below the folder, and the sockets with which it has reached or tries to reach others. */
async function opened(pid: number, folder: string) {
  const descriptors = await readdir(`/proc/${pid}/fd`);
  const targets = await Promise.all(
    descriptors.map((fd) => readlink(`/proc/${pid}/fd/${fd}`).catch(() => "")),
  );
  const inodes = new Set(targets.flatMap((target) => /^socket:\[(\d+)\]$/.exec(target)?.[1] ?? []));
  const LISTENING = "0A";
  const sockets: string[] = [];
  for (const family of ["tcp", "tcp6", "udp", "udp6"]) {
    const table = await readFile(`/proc/${pid}/net/${family}`, "utf8").catch(() => "");
    for (const line of table.split("\n").slice(1)) {
      const [, , remote, state, , , , , , inode] = line.trim().split(/\s+/);
      if (inode !== undefined && inodes.has(inode) && state !== LISTENING)
        sockets.push(`${family} ${remote}`);
    }
  }
  return { files: targets.filter((target) => target.startsWith(folder)), sockets };
}

const places = ["worker", "native", "process", "callback", "program in a thread"];

const PYTHON_MODEL = `import os
import numpy as np
import triton_python_backend_utils as pb_utils

class TritonPythonModel:
    def execute(self, requests):
        value = np.array([os.environ.get("ORT_DISABLE_TELEMETRY", "").encode()], dtype=object)
        return [pb_utils.InferenceResponse([pb_utils.Tensor("VALUE", value)]) for _ in requests]
`;

it.skipIf(!hasPython)(
  `the processes of Python models turn telemetry of ONNX Runtime off too${withoutPython}`,
  async () => {
    await using files = await RepositoryOnDisk.create({ "m/model.py": PYTHON_MODEL });
    await using triton = new Triton();
    const model = triton.bind({
      modelName: "m",
      inferFunc: python({ model: join(files.path, "m/model.py") }),
      inputs: [{ name: "X", dtype: "FP32", shape: [1] }],
      outputs: [{ name: "VALUE", dtype: "BYTES", shape: [1] }],
      config: { maxBatchSize: 0 },
    });
    const { VALUE } = await model.infer({ X: [0] });
    expect(VALUE.data).toEqual([Buffer.from("1")].map((text) => new Uint8Array(text)));
  },
);

describe.skipIf(note !== "")(`telemetry of ONNX Runtime${note}`, () => {
  it.each(places)("is off: no file, no descriptor and no socket (%s)", async (place) => {
    const { folder, pid } = await run([program, place, irisModel.href], "ran in", {});
    expect(await filesBelow(folder)).toEqual([]);
    expect(await opened(pid, folder)).toEqual({ files: [], sockets: [] });
  });

  it.each(places)("is on if the environment says so (%s)", async (place) => {
    const env = { ORT_DISABLE_TELEMETRY: "0" };
    const { folder, pid } = await run([program, place, irisModel.href], "ran in", env);
    // A thread of ONNX Runtime makes the files while the model runs.
    await expect
      .poll(() => filesBelow(folder))
      .toEqual(
        expect.arrayContaining([
          "cache/Microsoft/DeveloperTools/.onnxruntime/onnxruntime.db",
          expect.stringContaining("mat-debug"),
        ]),
      );
    await expect.poll(async () => (await opened(pid, folder)).files.join()).toContain("onnxruntime.db");
  });

  it("is off for an empty value", async () => {
    const env = { ORT_DISABLE_TELEMETRY: "" };
    const { folder } = await run([program, "worker", irisModel.href], "ran in", env);
    expect(await filesBelow(folder)).toEqual([]);
  });

  it.each([
    ["off", undefined, []],
    ["on if the environment says so", "0", [expect.stringContaining("onnxruntime.db")]],
  ])("is %s on the command line", async (_what, value, expected) => {
    const models = join(repositoryRoot, "examples/javascript-ensemble/models");
    const ports = ["--http-address=127.0.0.1", "--http-port=0", "--metrics-port=0", "--allow-grpc=false"];
    const command = join(repositoryRoot, "packages/cli/dist/main.js");
    const args = [command, "serve", `--model-repository=${models}`, ...ports];
    const { folder, pid } = await run(args, "Started Metrics Service", { ORT_DISABLE_TELEMETRY: value });
    const databases = async () =>
      (await filesBelow(folder)).filter((file) => file.endsWith("onnxruntime.db"));
    await expect.poll(databases).toEqual(expected);
    if (value !== undefined) return;
    expect(await filesBelow(folder)).toEqual([]);
    expect(await opened(pid, folder)).toEqual({ files: [], sockets: [] });
  });
});
