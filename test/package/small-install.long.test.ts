import { spawnSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it, test } from "vitest";
import { irisModel } from "../support/iris.js";
import { Program } from "../support/program.js";
import { repositoryRoot } from "../support/repository.js";
import { otherRuntime } from "./foreign-tools.js";
import { MuslRoot } from "./musl-root.js";
import { PackedPackages, type Project } from "./packed-packages.js";
import { ONNX_INSTALLED } from "./size-budgets.js";

const INSTALL_TIMEOUT_MS = 600_000;

const bun = otherRuntime("bun");
const deno = otherRuntime("deno");

/** The runtime of Deno's executables, which it downloads or `DENORT_BIN` names. */
const hasDenort = deno.path !== undefined && compilesInDeno(deno.path);
const withoutDenort = hasDenort ? "" : " (skipped: Deno cannot download its runtime of executables, denort)";

function compilesInDeno(path: string): boolean {
  const folder = mkdtempSync(join(tmpdir(), "tritonjs-denort-"));
  try {
    writeFileSync(join(folder, "empty.mjs"), "");
    const args = ["compile", "--no-check", "--output", "empty", "empty.mjs"];
    return spawnSync(path, args, { cwd: folder, timeout: 60_000 }).status === 0;
  } finally {
    rmSync(folder, { recursive: true });
  }
}

const musl = MuslRoot.create();
const withoutMusl = typeof musl === "string" ? ` (skipped: no root with musl: ${musl})` : "";

const packed = new PackedPackages();
let project: Project;

beforeAll(async () => {
  await packed.pack();
  const names = ["protocol", "core", "server", "backends", "onnxruntime-wasm", "http"] as const;
  project = await packed.install("small", names);
}, INSTALL_TIMEOUT_MS);
afterAll(() => {
  packed.remove();
  if (typeof musl !== "string") musl.remove();
}, INSTALL_TIMEOUT_MS);

/** Serves two models by ONNX Runtime over HTTP, asks one, and prints the log. */
const servingProgram = (model = fileURLToPath(irisModel)) => `
import { Triton } from "@tritonjs/core";
import { onnxruntime } from "@tritonjs/backends/onnxruntime";
import { http } from "@tritonjs/http";

const log = (message) => {
  if (/WebAssembly/.test(message)) console.log(message.split("\\n")[0]);
};
const triton = new Triton({ logger: { error: console.error, warn: console.error, info: log, debug() {} } });
const model = ${JSON.stringify(model)};
const iris = triton.bind({
  modelName: "iris",
  inferFunc: onnxruntime({ model }),
  config: { instanceGroup: [{ count: 2 }] },
});
await iris.ready();
console.log(iris.instances().map(({ details }) => details.engine).join());
const { addresses } = await triton.serve({ frontends: [http({ port: 0 })] });
const inputs = [{ name: "measurements", datatype: "FP32", shape: [1, 4], data: [5.1, 3.5, 1.4, 0.2] }];
const answer = await fetch(addresses.http.url + "/v2/models/iris/infer", {
  method: "POST",
  body: JSON.stringify({ inputs }),
});
const { outputs } = await answer.json();
console.log(outputs.find(({ name }) => name === "probabilities").data[0].toFixed(4));
await triton.close();
`;

describe("an application that serves ONNX models by WebAssembly", () => {
  it("is small, and brings neither fastify nor gRPC nor a native library", () => {
    const files = project.installed();
    expect(files.size / 1e6).toBeLessThan(ONNX_INSTALLED.megabytes);
    const names = project.installedPackages().map((folder) => folder.replace("node_modules/", ""));
    expect(names.length).toBeLessThanOrEqual(ONNX_INSTALLED.packages);
    expect(names.filter((name) => /fastify|grpc|onnxruntime-(node|web)|koffi|sharp/.test(name))).toEqual([]);
    expect(files.files.filter((file) => file.endsWith(".node"))).toEqual([]);
  });

  it("has its size on the page about installing", () => {
    const page = readFileSync(join(repositoryRoot, "docs", "installing.md"), "utf8");
    const stated = Number(/\| all of it \| ([\d.]+) MB \|/.exec(page)?.[1]);
    expect(project.installed().size / 1e6).toBeCloseTo(stated, 0);
  });

  it("chooses WebAssembly by itself, with one line in the log", async () => {
    const { code, stdout, stderr } = await project.run("serve.mjs", servingProgram());
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    const [line, engines, answer, ...others] = stdout.trimEnd().split("\n");
    expect(line).toMatch(
      /^model 'iris': ONNX Runtime runs as WebAssembly: cannot load onnxruntime-node \(.*\): install it next to @tritonjs\/backends$/,
    );
    expect([engines, answer, others]).toEqual(["wasm,wasm", "0.9980", []]);
  });

  it("chooses WebAssembly when onnxruntime-node has no library for the machine", async () => {
    const folder = join(project.folder, "node_modules", "onnxruntime-node");
    mkdirSync(folder);
    writeFileSync(
      join(folder, "package.json"),
      '{"name":"onnxruntime-node","version":"1.30.0","main":"index.js"}',
    );
    // What Alpine says of a library that was made for glibc.
    const text = "Error loading shared library ld-linux-x86-64.so.2: No such file or directory";
    writeFileSync(join(folder, "index.js"), `throw new Error(${JSON.stringify(text)});`);
    const { code, stdout, stderr } = await project.run("broken.mjs", servingProgram());
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    const [line, ...others] = stdout.trimEnd().split("\n");
    expect(line).toContain(`runs as WebAssembly: cannot load onnxruntime-node (${text}`);
    expect(others).toEqual(["wasm,wasm", "0.9980"]);
  });

  it.skipIf(typeof musl === "string")(`runs where musl is the only C library${withoutMusl}`, async () => {
    const root = musl as MuslRoot;
    cpSync(fileURLToPath(irisModel), join(project.folder, "iris.onnx"));
    project.write("musl.mjs", servingProgram("/app/iris.onnx"));
    root.copy(project.folder);
    const program = new Program("chroot", [root.folder, "/bin/bun", "/app/musl.mjs"], {
      cwd: "/",
      env: { TMPDIR: "/tmp" },
    });
    const { code, stdout, stderr } = await program.ended;
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    const [line, ...others] = stdout.trimEnd().split("\n");
    expect(line).toMatch(/^model 'iris': ONNX Runtime runs as WebAssembly: cannot load onnxruntime-node/);
    expect(others).toEqual(["wasm,wasm", "0.9980"]);
  });
});

describe("a server in a single file", () => {
  const example = join(repositoryRoot, "examples", "single-file");

  beforeAll(() => {
    // The programs find the model where it is in the repository.
    cpSync(join(example, "dist"), join(project.folder, "dist"), { recursive: true });
    const quickstart = join(project.folder, "..", "quickstart", "iris");
    mkdirSync(quickstart, { recursive: true });
    cpSync(fileURLToPath(irisModel), join(quickstart, "iris.onnx"));
  });

  /** Runs an executable in an empty folder, asks its model, and ends it. */
  async function answers(command: string, args: readonly string[] = []): Promise<void> {
    const cwd = mkdtempSync(join(tmpdir(), "tritonjs-single-"));
    const program = new Program(command, args, { cwd, env: { PORT: "0" } });
    try {
      const [, url] = /listening at (\S+)/.exec(await program.untilOutput("listening at "))!;
      const ask = async (data: unknown[]) => {
        const inputs = [{ name: "measurements", datatype: "FP32", shape: [1, data.length], data }];
        const body = JSON.stringify({ inputs });
        return fetch(`${url}/v2/models/iris/infer`, { method: "POST", body });
      };
      const measurements = [5.1, 3.5, 1.4, 0.2];
      const all = await Promise.all(Array.from({ length: 20 }, () => ask(measurements)));
      for (const answer of all) {
        const { outputs } = (await answer.json()) as { outputs: { name: string; data: number[] }[] };
        expect(outputs.find(({ name }) => name === "probabilities")!.data[0]).toBeCloseTo(0.99797, 4);
      }
      expect((await ask([1, 2])).status).toBe(400);
      program.signal("SIGTERM");
      const { code, stderr } = await program.ended;
      expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    } finally {
      program.signal("SIGKILL");
      await program.ended;
      rmSync(cwd, { recursive: true });
    }
  }

  async function build(command: string, args: readonly string[]): Promise<void> {
    const { code, stderr } = await new Program(command, args, { cwd: project.folder }).ended;
    expect({ code, stderr: code === 0 ? "" : stderr }).toEqual({ code: 0, stderr: "" });
  }

  test.skipIf(bun.path === undefined)(`is made by bun build --compile${bun.note}`, async () => {
    const file = join(project.folder, "iris-bun");
    await build(bun.path!, ["build", "--compile", join("dist", "bun.js"), "--outfile", file]);
    expect(statSync(file).size / 1e6).toBeLessThan(180);
    await answers(file);
  });

  const INCLUDED = [
    "../quickstart/iris/iris.onnx",
    "node_modules/@tritonjs/onnxruntime-wasm/ort/ort-wasm-simd-threaded.wasm",
  ].flatMap((file) => ["--include", file]);

  test.skipIf(!hasDenort)(`is made by deno compile${deno.note || withoutDenort}`, async () => {
    const flags = ["compile", "--bundle", "--no-check", "--allow-all", "--unstable-no-legacy-abort"];
    const file = join(project.folder, "iris-deno");
    await build(deno.path!, [...flags, ...INCLUDED, "--output", file, join("dist", "deno.js")]);
    await answers(file);
  });

  test.skipIf(deno.path === undefined)(`runs in Deno from its packages${deno.note}`, async () => {
    await answers(deno.path!, [...deno.args, join(project.folder, "dist", "deno.js")]);
  });
});
