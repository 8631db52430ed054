import { accessSync, constants, existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { LINES } from "../../scripts/node-lines.mjs";
import { PACKAGES } from "../package/packed-packages.js";
import { repositoryRoot } from "../support/repository.js";

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
