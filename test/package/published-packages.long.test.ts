import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { publint } from "publint";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Program } from "../support/program.js";
import { repositoryRoot } from "../support/repository.js";
import { PACKAGES, type PackageName, PackedPackages, type Packer, type Unpacked } from "./packed-packages.js";
import { SIZE_BUDGETS } from "./size-budgets.js";

const PACK_TIMEOUT_MS = 600_000;
const TYPES_TIMEOUT_MS = 300_000;

const packed: Record<Packer, PackedPackages> = { npm: new PackedPackages(), pnpm: new PackedPackages() };
const contents = new Map<PackageName, Record<Packer, Unpacked>>();

beforeAll(async () => {
  for (const packer of ["npm", "pnpm"] as const) await packed[packer].pack(packer);
  for (const name of PACKAGES) {
    contents.set(name, { npm: await packed.npm.unpack(name), pnpm: await packed.pnpm.unpack(name) });
  }
}, PACK_TIMEOUT_MS);
afterAll(() => {
  packed.npm.remove();
  packed.pnpm.remove();
});

describe.each(PACKAGES)("the packed @tritonjs/%s", (name) => {
  it("is the same whether npm or pnpm packs it, with the manifest of the repository", () => {
    const { npm, pnpm } = contents.get(name)!;
    expect(pnpm.files).toEqual(npm.files);
    const source = JSON.parse(readFileSync(join(repositoryRoot, "packages", name, "package.json"), "utf8"));
    expect(npm.manifest).toEqual(source);
    const { name: fullName, version, exports, bin, dependencies, peerDependencies } = npm.manifest;
    const named = { name: fullName, version, exports, bin, dependencies, peerDependencies };
    expect(pnpm.manifest).toMatchObject(JSON.parse(JSON.stringify(named)));
  });

  it("requires released versions of its siblings, which are those of the workspace", () => {
    const { version, dependencies, peerDependencies } = contents.get(name)!.npm.manifest;
    const siblings = Object.entries({ ...dependencies, ...peerDependencies })
      .filter(([dependency]) => dependency.startsWith("@tritonjs/"))
      .map(([, range]) => range);
    expect(siblings).toHaveLength(
      {
        protocol: 0,
        core: 1,
        server: 2,
        scheduling: 2,
        testing: 2,
        repository: 2,
        operations: 2,
        perf: 8,
        backends: 5,
        "onnxruntime-wasm": 0,
        http: 3,
        grpc: 3,
        client: 1,
        llm: 5,
        cli: 13,
      }[name],
    );
    expect(siblings.filter((range) => range !== `^${version}`)).toEqual([]);
  });

  it("names its source, its purpose, and its licence", () => {
    const url = "https://github.com/tritonjs/tritonjs";
    expect(contents.get(name)!.npm.manifest).toMatchObject({
      description: expect.stringMatching(/\.$/),
      keywords: expect.arrayContaining(["triton", "inference"]),
      homepage: `${url}/tree/main/packages/${name}#readme`,
      bugs: { url: `${url}/issues` },
      repository: { type: "git", url: `git+${url}.git`, directory: `packages/${name}` },
      license: name === "onnxruntime-wasm" ? "Apache-2.0 AND MIT" : "Apache-2.0",
      engines: { node: ">=20" },
      publishConfig: { access: "public" },
    });
  });

  it("contains only modules joined to a few files, declarations, a licence, a readme, programs and protocols", () => {
    const { files, folder } = contents.get(name)!.npm;
    const others = files.filter((file) => !/^dist\/.*\.(js|d\.ts)$/.test(file));
    const data = {
      protocol: /^(proto\/\w+\.proto|src\/grpc\/generated\/\w+\.(js|d\.ts))$/,
      backends: /^python\/.*\.py$/,
      "onnxruntime-wasm": /^ort\/(LICENSE|ort[\w.-]+\.(mjs|wasm))$/,
      http: /^page\/[\w-]+\.(html|css|js)$/,
      operations: /^page\/[\w-]+\.js$/,
      cli: /^templates\//,
    };
    const expected = (data as Partial<Record<PackageName, RegExp>>)[name];
    expect(others.filter((file) => expected?.test(file) !== true)).toEqual([
      "LICENSE",
      "README.md",
      "package.json",
    ]);
    const modules = files.filter((file) => /^dist\/.*\.js$/.test(file));
    // Its modules only name those of ONNX Runtime.
    if (name !== "onnxruntime-wasm")
      expect(modules.length).toBeLessThan(files.filter((file) => file.endsWith(".d.ts")).length / 2);
    expect(readFileSync(join(folder, "LICENSE"), "utf8")).toBe(
      readFileSync(join(repositoryRoot, "LICENSE"), "utf8"),
    );
  });

  it("is built before it is packed", () => {
    const { scripts } = contents.get(name)!.npm.manifest;
    expect(scripts?.prepack).toBe(`node ../../scripts/build.mjs packages/${name}`);
  });

  it("passes publint", async () => {
    const tarball = new Uint8Array(readFileSync(packed.npm.tarball(name))).buffer;
    const { messages } = await publint({ pack: { tarball }, strict: true });
    expect(messages).toEqual([]);
  });

  /* The packages are ES modules only. Node 20.19 and newer can `require` them. TypeScript still reports an error for a CommonJS file that does so with `module: node16`, and the resolution of Node 10 does not know `exports`. These two checks are left out. */
  it("has types that every resolution of ES modules finds", { timeout: TYPES_TIMEOUT_MS }, async () => {
    const attw = join(repositoryRoot, "node_modules", "@arethetypeswrong", "cli", "dist", "index.js");
    const args = ["--profile", "esm-only", "--no-definitely-typed", "--no-color"];
    // A file, and not a module.
    if (name === "onnxruntime-wasm") args.push("--exclude-entrypoints", "ort-wasm-simd-threaded.wasm");
    const { code, stdout } = await Program.node(attw, [packed.npm.tarball(name), ...args], repositoryRoot)
      .ended;
    expect({ code, stdout: code === 0 ? "" : stdout }).toEqual({ code: 0, stdout: "" });
  });

  it("stays within its size budget", () => {
    const budget = SIZE_BUDGETS[name];
    const { npm } = contents.get(name)!;
    expect(statSync(packed.npm.tarball(name)).size / 1e3).toBeLessThan(budget.packedKilobytes);
    expect(npm.size / 1e3).toBeLessThan(budget.unpackedKilobytes);
    expect(Object.keys(npm.manifest.dependencies ?? {}).length).toBeLessThanOrEqual(budget.dependencies);
  });
});

it("every folder of packages is published", () => {
  expect(readdirSync(join(repositoryRoot, "packages")).sort()).toEqual([...PACKAGES].sort());
});
