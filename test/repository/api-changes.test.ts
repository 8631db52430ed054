import { expect, it } from "vitest";
import {
  type ApiChange,
  apiChanges,
  higher,
  levelBetween,
  neededLevel,
  reaches,
} from "../../scripts/api-changes.mjs";
import { Program } from "../support/program.js";
import { repositoryRoot } from "../support/repository.js";

const report = (code: string) => `# What p exports\n\n## \`p\`\n\n\`\`\`ts\n${code}\n\`\`\`\n`;
const base = [
  "export interface Options {\n    readonly size: number;\n}",
  "export function run(options: Options): void;",
  "export class Server {\n    close(): void;\n}",
];

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
