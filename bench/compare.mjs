/*
 * `npm run bench -- compare <revision> [case ...]` compares this tree with another revision, in turns. The other
 * revision is checked out and built in a temporary directory. A directory with a built tree works as well. The
 * beginning of a name selects all cases that begin so: `compare HEAD~30 in-process`.
 */

import { execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { PNPM } from "../scripts/install.mjs";
import { root } from "../scripts/run.mjs";
import {
  binaryBody,
  compareServers,
  grpcCoreLoad,
  grpcLoad,
  hasGrpcCore,
  httpLoad,
  inferMessage,
  jsonBody,
} from "./support/load.mjs";
import { medianOf, ratioOf, runPairs, SECONDS } from "./support/pairs.mjs";
import { startProgram } from "./support/program.mjs";
import { saveResult } from "./support/report.mjs";

/**
 * Checks a revision out in a temporary directory and builds packages of it. A directory with a built tree is used as it
 * is.
 *
 * @param packages names of folders in `packages`
 * @returns the root of the tree, and a function that removes it
 */
export function checkOut(revision, packages) {
  if (existsSync(join(revision, "packages"))) return { tree: resolve(revision), remove() {} };
  const git = (...args) => execFileSync("git", args, { cwd: root, encoding: "utf8" }).trim();
  const commit = commitOf(revision, git);
  const folder = mkdtempSync(join(tmpdir(), "tritonjs-compare-"));
  const tree = join(folder, "tree");
  const remove = () => {
    git("worktree", "remove", "--force", tree);
    rmSync(folder, { recursive: true, force: true });
  };
  git("worktree", "add", "--quiet", "--detach", tree, commit);
  try {
    // Do not use `run`, which ends this process: the tree has to be removed.
    const options = { cwd: tree, stdio: ["ignore", "ignore", "inherit"] };
    console.error(`building ${commit.slice(0, 8)} in ${tree}`);
    execFileSync("npx", ["--yes", PNPM, "install", "--frozen-lockfile", "--prefer-offline"], {
      ...options,
      shell: process.platform === "win32",
    });
    const [tsc, bundle] = [join("node_modules", "typescript", "bin", "tsc"), join("scripts", "bundle.mjs")];
    for (const name of packages) {
      const folder = join("packages", name);
      execFileSync(process.execPath, [tsc, "-b", folder], options);
      // In older revisions the compiler writes the JavaScript too.
      const isComplete = existsSync(join(tree, folder, "dist", "index.js"));
      if (!isComplete) execFileSync(process.execPath, [bundle, name], options);
    }
  } catch (error) {
    remove();
    throw error;
  }
  return { tree, remove };
}

function commitOf(revision, git) {
  try {
    return git("rev-parse", "--verify", "--quiet", `${revision}^{commit}`);
  } catch (cause) {
    throw new Error(`'${revision}' is neither a revision that git knows nor the root of a tree`, { cause });
  }
}

const STREAM_MESSAGES = 200;

/**
 * Each measurement is of a program of its own: what V8 makes of the same code differs by up to 10% from one process to
 * the next.
 */
const inProcess = (concurrency) => async (trees) => {
  const run = async (tree) => {
    const program = await startProgram("in-process", { kind: "tritonjs" }, tree);
    await program.call("run", concurrency, SECONDS);
    const figures = await program.call("run", concurrency, SECONDS);
    await program.stop();
    return figures;
  };
  const runs = await runPairs(
    () => run(trees[0]),
    () => run(trees[1]),
    { warmUp: false },
  );
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

/** @param loadOf returns the load for a server, given its URLs */
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

/** Large messages from the C++ client of gRPC. */
const overGrpcCore = (concurrency, options) =>
  served(async ({ grpc }) => {
    const message = await inferMessage(large.model, large.byteSize, false);
    const load = { connections: 4, streams: concurrency / 4 };
    return (seconds) => grpcCoreLoad({ url: grpc, message }, load, seconds);
  }, options);

const small = { model: "small", byteSize: 64 };
const large = { model: "large", byteSize: 600_000 };
const cases = {
  "in-process-1": inProcess(1),
  "in-process-64": inProcess(64),
  "in-process-1024": inProcess(1024),
  "http-64B": overHttp(binaryBody("small", [1, 16]), 64),
  "http-600KB": overHttp(binaryBody("large", [150_000]), 16, { seconds: 2 * SECONDS }),
  "http-600KB-64": overHttp(binaryBody("large", [150_000]), 64, { seconds: 2 * SECONDS }),
  "http-json": overHttp(jsonBody("large", 600_000), 16, { seconds: 2 * SECONDS }),
  "grpc-64B": overGrpc({ ...small, method: "ModelInfer" }, { connections: 4, streams: 8 }),
  "grpc-600KB": overGrpc(
    { ...large, method: "ModelInfer" },
    { connections: 4, streams: 2 },
    { seconds: 2 * SECONDS },
  ),
  "grpc-600KB-core": overGrpcCore(16, { seconds: 2 * SECONDS }),
  "grpc-600KB-core-64": overGrpcCore(64, { seconds: 2 * SECONDS }),
  "grpc-stream": overGrpc(
    { ...small, method: "ModelStreamInfer", count: STREAM_MESSAGES },
    { connections: 4, streams: 1 },
    { scale: STREAM_MESSAGES },
  ),
};

/** Packages that a case needs, by the beginning of its name. */
const packagesOf = (name) => (name.startsWith("in-process") ? ["core"] : ["core", "http", "grpc"]);

const [revision, ...chosen] = process.argv.slice(2);
const all = Object.keys(cases);
/** The case of this name, or all cases whose names begin so. */
const casesOf = (choice) =>
  all.includes(choice) ? [choice] : all.filter((name) => name.startsWith(`${choice}-`));
const unknown = chosen.filter((choice) => casesOf(choice).length === 0);
if (revision === undefined || unknown.length > 0) {
  if (unknown.length > 0) console.error(`no case ${unknown.join(", ")}`);
  console.error(`usage: npm run bench -- compare <revision> [${all.join(" | ")}] ...`);
  process.exit(1);
}
const byDefault = all.filter((name) => !name.includes("core") || hasGrpcCore());
const names = chosen.length > 0 ? [...new Set(chosen.flatMap(casesOf))] : byDefault;
const other = checkOut(revision, [...new Set(names.flatMap(packagesOf))]);
try {
  const rows = {};
  for (const name of names) rows[name] = await cases[name]([process.env.BENCH_TREE ?? root, other.tree]);
  console.table(rows);
  saveResult("compare", { revision, rows });
} finally {
  other.remove();
}
