/*
 * `npm run bench -- compare <revision> [case ...]`: this tree against another revision of it, in turns. The other one is
 * checked out and built in a temporary directory; a directory that holds a built tree does as well.
 */
import { execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { PNPM } from "../scripts/install.mjs";
import { root, run, runNode } from "../scripts/run.mjs";
import { compareServers } from "./support/load/compare-servers.mjs";
import { grpcLoad } from "./support/load/grpc-load.mjs";
import { inferMessage } from "./support/load/grpc-messages.mjs";
import { binaryBody, jsonBody } from "./support/load/http-bodies.mjs";
import { httpLoad } from "./support/load/http-load.mjs";
import { medianOf, ratioOf, runPairs, SECONDS } from "./support/pairs.mjs";
import { startProgram } from "./support/program.mjs";
import { saveResult } from "./support/save-result.mjs";

const STREAM_MESSAGES = 200;

/** Builds a revision; returns its root and what removes it again. */
function checkOut(revision) {
  if (existsSync(join(revision, "packages"))) return { tree: resolve(revision), remove() {} };
  const git = (...args) => execFileSync("git", args, { cwd: root, encoding: "utf8" }).trim();
  const commit = git("rev-parse", "--verify", `${revision}^{commit}`);
  const folder = mkdtempSync(join(tmpdir(), "tritonjs-compare-"));
  const tree = join(folder, "tree");
  git("worktree", "add", "--detach", tree, commit);
  const remove = () => {
    git("worktree", "remove", "--force", tree);
    rmSync(folder, { recursive: true, force: true });
  };
  try {
    run("npx", ["--yes", PNPM, "install", "--frozen-lockfile"], { cwd: tree, stdio: "ignore" });
    for (const name of ["core", "http", "grpc"]) {
      runNode(join(root, "node_modules", "typescript", "bin", "tsc"), ["-b", join(tree, "packages", name)]);
    }
  } catch (error) {
    remove();
    throw error;
  }
  return { tree, remove };
}

const inProcess = (concurrency) => async (trees) => {
  const [ours, theirs] = await Promise.all(
    trees.map((tree) => startProgram("in-process", { kind: "tritonjs" }, tree)),
  );
  const call = (program) => () => program.call("run", concurrency, SECONDS);
  const runs = await runPairs(call(ours), call(theirs));
  await Promise.all([ours.stop(), theirs.stop()]);
  const micros = (run) => run.cpuMicroseconds;
  const cpu = ratioOf({ ours: runs.reference, reference: runs.ours }, micros);
  const { ratios, ...ratio } = ratioOf(runs);
  return {
    "a second here": medianOf(runs.ours, ({ rate }) => rate),
    "a second there": medianOf(runs.reference, ({ rate }) => rate),
    ...ratio,
    "CPU µs here": medianOf(runs.ours, micros),
    "CPU µs there": medianOf(runs.reference, micros),
    "ratio by CPU": cpu.ratio,
  };
};

/** @param loadOf what loads a server, given its URLs */
const served =
  (loadOf, options = {}) =>
  async (trees) => {
    const programs = await Promise.all(trees.map((tree) => startProgram("identity-server", {}, tree)));
    const sides = [];
    for (const program of programs) sides.push([program, await loadOf(await program.call("urls"))]);
    const { row } = await compareServers(sides[0], sides[1], options);
    await Promise.all(programs.map((program) => program.stop()));
    return row;
  };

const overHttp = (request, connections, options) =>
  served(
    ({ http }) =>
      (seconds) =>
        httpLoad({ ...request, url: `${http}${request.path}` }, connections, seconds),
    options,
  );

const overGrpc = (call, load, options) =>
  served(async ({ grpc }) => {
    const { count = 1, model, byteSize, method } = call;
    const message = await inferMessage(model, byteSize, model === "small");
    const messages = Array.from({ length: count }, () => message);
    return (seconds) => grpcLoad({ url: grpc, method, messages }, load, seconds);
  }, options);

const small = { model: "small", byteSize: 64 };
const large = { model: "large", byteSize: 600_000 };
const cases = {
  "in-process-1": inProcess(1),
  "in-process-64": inProcess(64),
  "in-process-1024": inProcess(1024),
  "http-64B": overHttp(binaryBody("small", [1, 16]), 64),
  "http-600KB": overHttp(binaryBody("large", [150_000]), 16, { seconds: 2 * SECONDS }),
  "http-json": overHttp(jsonBody("large", 600_000), 16, { seconds: 2 * SECONDS }),
  "grpc-64B": overGrpc({ ...small, method: "ModelInfer" }, { connections: 4, streams: 8 }),
  "grpc-600KB": overGrpc(
    { ...large, method: "ModelInfer" },
    { connections: 4, streams: 2 },
    { seconds: 2 * SECONDS },
  ),
  "grpc-stream": overGrpc(
    { ...small, method: "ModelStreamInfer", count: STREAM_MESSAGES },
    { connections: 4, streams: 1 },
    { scale: STREAM_MESSAGES },
  ),
};

const [revision, ...names] = process.argv.slice(2);
if (revision === undefined)
  throw new Error(`usage: npm run bench -- compare <revision> [${Object.keys(cases).join(" ")}]`);
const other = checkOut(revision);
try {
  const rows = {};
  for (const name of names.length > 0 ? names : Object.keys(cases)) {
    rows[name] = await cases[name]([process.env.BENCH_TREE ?? root, other.tree]);
    console.error(name, rows[name]);
  }
  console.table(rows);
  saveResult("compare", { revision, rows });
} finally {
  other.remove();
}
