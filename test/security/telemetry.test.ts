import { mkdir, mkdtemp, readdir, readFile, readlink, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it, onTestFinished } from "vitest";
import { irisModel } from "../support/iris.js";
import { Program } from "../support/program.js";
import { repositoryRoot } from "../support/repository.js";

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
  const ran = /ran in ([\d,]+)\./.exec(output);
  const pids = ran === null ? [started.pid!] : ran[1]!.split(",").map(Number);
  return { folder, pids: [...new Set(pids)] };
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

describe.skipIf(note !== "")(`telemetry of ONNX Runtime${note}`, () => {
  it.each([
    ["in worker threads, in the event loop, in a process and in a callback", "main", "", 2],
    ["of a program in a thread", "thread", undefined, 1],
  ])("is off: no file, no descriptor and no socket, %s", async (_where, place, value, processes) => {
    const env = { ORT_DISABLE_TELEMETRY: value };
    const { folder, pids } = await run([program, place, irisModel.href], "ran in", env);
    expect(pids).toHaveLength(processes);
    expect(await filesBelow(folder)).toEqual([]);
    for (const pid of pids) expect(await opened(pid, folder)).toEqual({ files: [], sockets: [] });
  });

  it("is on if the environment says so", async () => {
    const env = { ORT_DISABLE_TELEMETRY: "0" };
    const { folder, pids } = await run([program, "thread", irisModel.href], "ran in", env);
    // A thread of ONNX Runtime makes the files while the model runs.
    await expect
      .poll(() => filesBelow(folder))
      .toEqual(
        expect.arrayContaining([
          "cache/Microsoft/DeveloperTools/.onnxruntime/onnxruntime.db",
          expect.stringContaining("mat-debug"),
        ]),
      );
    await expect.poll(async () => (await opened(pids[0]!, folder)).files.join()).toContain("onnxruntime.db");
  });

  it("is off on the command line", async () => {
    const models = join(repositoryRoot, "examples/javascript-ensemble/models");
    const ports = ["--http-address=127.0.0.1", "--http-port=0", "--metrics-port=0", "--allow-grpc=false"];
    const command = join(repositoryRoot, "packages/cli/dist/main.js");
    const args = [command, "serve", `--model-repository=${models}`, ...ports];
    const { folder, pids } = await run(args, "Started Metrics Service", {});
    expect(await filesBelow(folder)).toEqual([]);
    expect(await opened(pids[0]!, folder)).toEqual({ files: [], sockets: [] });
  });
});
