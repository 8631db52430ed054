import { readFileSync } from "node:fs";
import { join } from "node:path";
import { readArguments } from "@tritonjs/cli";
import { Triton } from "@tritonjs/core";
import { VERSION } from "@tritonjs/core/internal";
import { http } from "@tritonjs/http";
import { describe, expect, it } from "vitest";
import { PACKAGES } from "../package/packed-packages.js";
import { Program } from "../support/program.js";
import { repositoryRoot } from "../support/repository.js";

function read(path: string): string {
  return readFileSync(join(repositoryRoot, path), "utf8");
}

const dockerfile = read("deploy/Dockerfile");
const unit = read("deploy/tritonjs.service");
const manifest = JSON.parse(read("packages/cli/package.json")) as { bin: Record<string, string> };

/** The value of a directive: the last one counts, as for the readers of these files. */
function directive(text: string, name: string): string {
  return [...text.matchAll(new RegExp(`^\\s*${name}\\s*[=:]?\\s*(.*)$`, "gm"))].at(-1)![1]!;
}

const docker = JSON.parse(directive(dockerfile, "CMD")) as string[];
const [, program, ...unitArgs] = directive(unit, "ExecStart").split(" ");

describe.each([
  ["Dockerfile", docker],
  ["tritonjs.service", unitArgs],
])("%s", (_, [command, ...args]) => {
  it("serves with options that exist and have an effect", () => {
    expect(command).toBe("serve");
    expect(readArguments(args, {}).warnings).toEqual([]);
  });

  it("keeps the default ports", () => {
    const { values } = readArguments(args, {});
    expect([values["http-port"], values["grpc-port"], values["metrics-port"]]).toEqual([8000, 8001, 8002]);
  });
});

describe("the Dockerfile", () => {
  it("exposes the ports of the command and probes the right one for readiness", () => {
    expect(directive(dockerfile, "EXPOSE")).toBe("8000 8001 8002");
    expect(dockerfile).toMatch(/^HEALTHCHECK [\s\S]*?http:\/\/127\.0\.0\.1:8000\/v2\/health\/ready/m);
  });

  it("runs the package's command without root, and stops it with a signal that it handles", () => {
    const [node, path] = JSON.parse(directive(dockerfile, "ENTRYPOINT")) as string[];
    expect(node).toBe("node");
    expect(path).toBe(`/app/node_modules/.bin/${Object.keys(manifest.bin)[0]}`);
    expect(directive(dockerfile, "USER")).toBe("1000:1000");
    expect(directive(dockerfile, "STOPSIGNAL")).toBe("SIGTERM");
  });

  it("installs all packages in the current version, with the package manager of the repository", () => {
    expect(directive(dockerfile, "ARG TRITONJS_VERSION")).toBe(VERSION);
    const published = [...dockerfile.matchAll(/@tritonjs\/(\w+)@\$\{TRITONJS_VERSION\}/g)].map(
      ([, name]) => name,
    );
    expect(published).toEqual(["core", "http", "grpc", "cli"]);
    expect(dockerfile).toContain(`for name in ${PACKAGES.join(" ")}; do`);
    const [manager] = /pnpm@[\d.]+/.exec(read("scripts/install.mjs"))!;
    expect(new Set(dockerfile.match(/pnpm@[\d.]+/g))).toEqual(new Set([manager]));
  });
});

describe("the variants of the image", () => {
  const stages = [...dockerfile.matchAll(/^FROM (\S+)(?: AS (\S+))?$/gm)].map(([, from, name]) => ({
    from,
    name,
  }));

  it("end in a stage that the build arguments choose", () => {
    expect(stages.at(-1)).toEqual({ from: `\${ACCELERATOR}`, name: undefined });
    const names = stages.map(({ name }) => name);
    expect(names).toEqual(expect.arrayContaining(["cpu", "cuda", "registry", "workspace"]));
    expect(names).toContain(/^ARG ACCELERATOR=(\w+)$/m.exec(dockerfile)![1]);
    expect(names).toContain(/^ARG SOURCE=(\w+)$/m.exec(dockerfile)![1]);
  });

  it("copy only from stages that exist", () => {
    const names = new Set(stages.map(({ name }) => name));
    for (const [, from] of dockerfile.matchAll(/^COPY --from=(\S+)/gm)) expect(names).toContain(from);
  });

  it("list their packages", () => {
    expect(dockerfile).toContain("npm sbom --sbom-format=spdx --omit=dev > sbom.spdx.json");
  });
});

it("the health check of the image succeeds while a server is ready", async () => {
  const check = /^HEALTHCHECK [^[]*(\[.*\])$/m.exec(dockerfile.replaceAll("\\\n", ""))![1]!;
  const [command, ...args] = JSON.parse(check) as [string, ...string[]];
  expect(command).toBe("node");
  const triton = new Triton();
  const { addresses } = await triton.serve({ frontends: [http({ port: 0, address: "127.0.0.1" })] });
  const at = args.map((arg) => arg.replace("127.0.0.1:8000", `127.0.0.1:${addresses.http!.port}`));
  const run = async () => (await new Program(process.execPath, at, { cwd: repositoryRoot }).ended).code;
  expect(await run()).toBe(0);
  await triton.close();
  expect(await run()).toBe(1);
});

describe("a process manager that stops the server", () => {
  it.each([["systemd", directive(unit, "TimeoutStopSec"), unitArgs]])(
    "%s gives it more time than its requests have",
    (_, seconds, [, ...args]) => {
      expect(Number(seconds)).toBeGreaterThan(readArguments(args, {}).values["exit-timeout-secs"]);
    },
  );

  it("sends a signal that it handles", () => {
    expect(directive(unit, "KillSignal")).toBe("SIGTERM");
  });
});

it("the systemd unit runs the command by its name", () => {
  expect(Object.keys(manifest.bin)).toEqual([program]);
});
