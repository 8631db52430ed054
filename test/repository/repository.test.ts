import { spawnSync } from "node:child_process";
import { accessSync, constants, existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { readArguments } from "@tritonjs/cli";
import { Triton } from "@tritonjs/core";
import { VERSION } from "@tritonjs/core/internal";
import { http } from "@tritonjs/http";
import { describe, expect, it } from "vitest";
import {
  type ApiChange,
  apiChanges,
  higher,
  levelBetween,
  neededLevel,
  reaches,
} from "../../scripts/api-changes.mjs";
import { LINES } from "../../scripts/node-lines.mjs";
import { PACKAGES } from "../package/packed-packages.js";
import { Program } from "../support/program.js";
import { repositoryRoot } from "../support/repository.js";

const report = (code: string) => `# What p exports\n\n## \`p\`\n\n\`\`\`ts\n${code}\n\`\`\`\n`;

const base = [
  "export interface Options {\n    readonly size: number;\n}",
  "export function run(options: Options): void;",
  "export class Server {\n    close(): void;\n}",
];

describe("changes of the API", () => {
  it.each<[what: string, code: string[], changes: ApiChange[]]>([
    ["equal exports", base, []],
    ["a removed export", base.slice(0, 2), [{ kind: "removed", name: "p: Server" }]],
    ["a new export", [...base, "export const X = 1;"], [{ kind: "added", name: "p: X" }]],
    [
      "a renamed export",
      [...base.slice(0, 2), "export class Service {\n    close(): void;\n}"],
      [
        { kind: "removed", name: "p: Server" },
        { kind: "added", name: "p: Service" },
      ],
    ],
    [
      "another parameter",
      [base[0]!, "export function run(): void;", base[2]!],
      [{ kind: "changed", name: "p: run" }],
    ],
    [
      "a further overload",
      [base[0]!, base[1]!, "export function run(): void;", base[2]!],
      [{ kind: "changed", name: "p: run" }],
    ],
    [
      "a new optional member",
      [
        "export interface Options {\n    readonly delay?: number;\n    readonly size: number;\n}",
        base[1]!,
        base[2]!,
      ],
      [{ kind: "extended", name: "p: Options" }],
    ],
    [
      "a new required member",
      [
        "export interface Options {\n    readonly delay: number;\n    readonly size: number;\n}",
        base[1]!,
        base[2]!,
      ],
      [{ kind: "changed", name: "p: Options" }],
    ],
    [
      "a new method of a class",
      [base[0]!, base[1]!, "export class Server {\n    close(): void;\n    open(): void;\n}"],
      [{ kind: "extended", name: "p: Server" }],
    ],
  ])("the comparison of API reports finds %s", (_, code, changes) => {
    expect(apiChanges(report(base.join("\n\n")), report(code.join("\n\n")))).toEqual(changes);
  });

  it("an entry point that is removed removes its exports", () => {
    expect(apiChanges(report(base.join("\n\n")), "").map(({ kind }) => kind)).toEqual(
      base.map(() => "removed"),
    );
  });

  it("a removed or changed export needs a major version, or a minor one below 1.0", () => {
    for (const kind of ["removed", "changed"] as const) {
      expect([neededLevel(kind, "0.9.1"), neededLevel(kind, "1.0.0")]).toEqual(["minor", "major"]);
    }
    for (const kind of ["added", "extended"] as const) {
      expect([neededLevel(kind, "0.9.1"), neededLevel(kind, "10.0.0")]).toEqual(["patch", "minor"]);
    }
    expect(reaches("major", "minor")).toBe(true);
    expect(reaches("patch", "minor")).toBe(false);
    expect(reaches(undefined, "patch")).toBe(false);
  });

  it("a raised version announces changes as a changeset of its level does", () => {
    expect(levelBetween("0.1.0", "0.1.0")).toBe(undefined);
    expect(levelBetween("0.1.9", "0.1.10")).toBe("patch");
    expect(levelBetween("0.1.9", "0.2.0")).toBe("minor");
    expect(levelBetween("0.9.0", "1.0.0")).toBe("major");
    expect(higher(undefined, "patch")).toBe("patch");
    expect(higher("minor", undefined)).toBe("minor");
    expect(higher("patch", "major")).toBe("major");
    expect(higher(undefined, undefined)).toBe(undefined);
  });

  it("the check of changesets refuses a commit that does not exist", async () => {
    const args = ["--since", "no-such-commit"];
    const { code, stderr } = await Program.node("scripts/release-api.mjs", args, repositoryRoot).ended;
    expect({ code, stderr }).toEqual({
      code: 1,
      stderr: "cannot compare the API reports: expected a commit in --since, got 'no-such-commit'\n",
    });
  });
});

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

describe("the files of deployments", () => {
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

  it("the systemd unit runs the command by its name", () => {
    expect(Object.keys(manifest.bin)).toEqual([program]);
  });
});

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

/** What git lists. A copy that is not a clone has no such list. */
const listed = spawnSync("git", ["ls-files", "-z"], { cwd: repositoryRoot, encoding: "utf8" });

const files = listed.status === 0 ? textFiles(listed.stdout) : [];

const note = listed.status === 0 ? "" : " (skipped: git lists no files here)";

describe.skipIf(files.length === 0)(`no file of the repository${note}`, () => {
  // Built from parts here, so that this file does not contain them.
  it.each([
    ["paths of the machine it was written on", new RegExp(["/wo", "rk/"].join(""))],
    ["home folders", /(?:^|[\s"'(])\/(?:home|Users|root)\/\w/m],
    ["a package registry", new RegExp(["\\bregis", "try\\.(?!test\\.)[a-z0-9-]+\\.[a-z]{2,}"].join(""))],
    ["an .npmrc's token", new RegExp(["_auth", "Token"].join(""))],
  ])("contains %s", (_what, pattern) => {
    expect(files.filter(({ text }) => pattern.test(text)).map(({ path }) => path)).toEqual([]);
  });
});

describe("the repository", () => {
  it("is licensed under Apache-2.0", () => {
    const licence = readFileSync(join(repositoryRoot, "LICENSE"), "utf8");
    expect(licence).toMatch(/Apache License\s+Version 2\.0, January 2004/);
    for (const folder of [".", "packages/core", "packages/http", "packages/grpc"]) {
      const manifest = JSON.parse(readFileSync(join(repositoryRoot, folder, "package.json"), "utf8"));
      expect(manifest.license).toBe("Apache-2.0");
    }
  });

  it("has a lockfile that names packages by their checksums, not by their source", () => {
    const lock = readFileSync(join(repositoryRoot, "pnpm-lock.yaml"), "utf8");
    expect(lock).toContain("integrity: sha512-");
    expect(lock).not.toMatch(/tarball:|https?:\/\//);
  });
});

/** Text files of the repository. */
function textFiles(listed: string) {
  return listed
    .split("\0")
    .filter((path) => path !== "")
    .filter((path) => statSync(join(repositoryRoot, path), { throwIfNoEntry: false })?.isFile() === true)
    .map((path) => ({ path, text: readFileSync(join(repositoryRoot, path), "utf8") }))
    .filter(({ text }) => !text.includes("\0"));
}

describe("the workflows of GitHub", () => {
  const read = (...path: string[]) => readFileSync(join(repositoryRoot, ...path), "utf8");

  const { scripts } = JSON.parse(read("package.json")) as { scripts: Record<string, string> };

  const FOLDER = ".github/workflows";

  const workflows = readdirSync(join(repositoryRoot, FOLDER)).map(
    (file) => [file, read(FOLDER, file)] as const,
  );

  /** Values of the keys whose names match, one line each. */
  function valuesOf(text: string, key: string): string[] {
    return [...text.matchAll(new RegExp(`^[ -]*(?:${key}): (.+)$`, "gm"))].map(([, value]) => value!);
  }

  /** The target of a command: the script of package.json, or a file. */
  function target(command: string): string {
    const [program, first, second] = command.split(" ");
    if (program !== "npm") return program!;
    return first === "run" ? second! : first!;
  }

  describe.each(workflows)("the workflow %s", (_, text) => {
    it("runs scripts of package.json or files of the repository", () => {
      const targets = valuesOf(text, "run|\\w+-script").map(target);
      const missing = targets.filter((name) => !(name in scripts) && !existsSync(join(repositoryRoot, name)));
      expect(missing).toEqual([]);
    });

    // A tag can be moved to another commit after it was reviewed.
    it("names actions by commit with their version, and existing workflows", () => {
      for (const used of valuesOf(text, "uses")) {
        if (used.startsWith("./")) expect(existsSync(join(repositoryRoot, used))).toBe(true);
        else expect(used).toMatch(/^[\w-]+\/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$/);
      }
    });

    it("has only read permissions, unless a job needs more", () => {
      expect(text).toMatch(/^permissions:\n {2}contents: read$/m);
    });
  });

  it("the workflows run the tests, and release only after them", () => {
    const [ci, release] = [read(FOLDER, "ci.yml"), read(FOLDER, "release.yml")];
    expect(valuesOf(ci, "run")).toEqual([
      ".ci/run",
      "npm run release:dry-run",
      expect.stringMatching(/^npm run release:api -- --since origin\/\$\{\{ github.base_ref \}\}$/),
    ]);
    expect(valuesOf(ci, "node")).toEqual([`[${LINES.join(", ")}]`]);
    expect(valuesOf(release, "uses")).toContain("./.github/workflows/ci.yml");
    expect(valuesOf(release, "needs")).toEqual(["test", "release"]);
    expect(valuesOf(release, "version-script|publish-script")).toEqual([
      "npm run release:version",
      "npm run release:publish",
    ]);
  });

  it("a release publishes its documentation site", () => {
    const [docs, release] = [read(FOLDER, "docs.yml"), read(FOLDER, "release.yml")];
    expect(valuesOf(release, "uses")).toContain("./.github/workflows/docs.yml");
    expect(docs).toMatch(/^ {2}workflow_call:$/m);
    expect(valuesOf(docs, "run")).toEqual([
      expect.stringMatching(/^npm run docs -- --base \/\$\{\{ github.event.repository.name \}\}\/$/),
      "npm run release:site",
    ]);
  });

  it("the tests run every week on the platforms that the page on installing names, and not as a part of a release", () => {
    const platforms = read(FOLDER, "platforms.yml");
    expect(valuesOf(platforms, "run")).toEqual(["npm test"]);
    expect(valuesOf(platforms, "cron")).toEqual([expect.stringMatching(/^"\d+ \d+ \* \* \d"$/)]);
    const [, table] = /^## Platforms\n(.*?)^## /ms.exec(read("docs", "installing.md"))!;
    const [, runners] = /\[(.*)\]/.exec(valuesOf(platforms, "os")[0]!)!;
    for (const runner of runners!.split(", ")) expect(table).toContain(`\`${runner}\``);
  });

  it("the page on installing names the lines of Node that are tested", () => {
    const [, lines] = /^\| lines \| (.*) \|$/m.exec(read("docs", "installing.md"))!;
    expect(lines!.match(/\d+/g)).toEqual(LINES);
  });

  it("dependencies are audited every week, and not as a part of the tests", () => {
    const audit = read(FOLDER, "audit.yml");
    expect(valuesOf(audit, "run")).toEqual(["npm run audit"]);
    expect(valuesOf(audit, "cron")).toEqual([expect.stringMatching(/^"\d+ \d+ \* \* \d"$/)]);
  });

  it("a release proves where it was built, and lists what is in it", () => {
    const release = read(FOLDER, "release.yml");
    // pnpm publishes. It reads this name alone, and not npm's.
    expect(valuesOf(release, "PNPM_CONFIG_PROVENANCE")).toEqual(['"true"']);
    expect(valuesOf(release, "id-token")).toEqual(["write"]);
    expect(valuesOf(release, "run")).toEqual(["npm run release:sbom"]);
  });

  it.skipIf(process.platform === "win32")("the program of continuous integration is executable", () => {
    expect(() => accessSync(join(repositoryRoot, ".ci", "run"), constants.X_OK)).not.toThrow();
  });

  it("every script of package.json that runs a file has that file", () => {
    const files = Object.values(scripts).flatMap((script) => script.match(/\S+\.mjs/g) ?? []);
    expect(files.length).toBeGreaterThan(0);
    expect(files.filter((file) => !existsSync(join(repositoryRoot, file)))).toEqual([]);
  });

  describe("changesets", () => {
    it("release all packages with one version", () => {
      const { fixed, access } = JSON.parse(read(".changeset", "config.json"));
      expect({ fixed, access }).toEqual({ fixed: [["@tritonjs/*"]], access: "public" });
    });

    it("name existing packages", () => {
      const names = PACKAGES.map((name) => `@tritonjs/${name}`);
      const files = readdirSync(join(repositoryRoot, ".changeset")).filter((file) =>
        /^[^A-Z].*\.md$/.test(file),
      );
      for (const file of files) {
        const [, front] = /^---\n(.*?)\n---\n\n\S/s.exec(read(".changeset", file))!;
        for (const line of front!.split("\n")) {
          const [, name] = /^"(@tritonjs\/[\w-]+)": (?:patch|minor|major)$/.exec(line) ?? [];
          expect(names).toContain(name);
        }
      }
    });

    it("write a changelog for each package, which the list of changelogs names", () => {
      const list = read("CHANGELOG.md");
      for (const name of PACKAGES) {
        expect(read("packages", name, "CHANGELOG.md")).toMatch(new RegExp(`^# @tritonjs/${name}\n`));
        expect(list).toContain(`(packages/${name}/CHANGELOG.md)`);
      }
    });
  });
});
