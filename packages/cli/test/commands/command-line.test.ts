import { execFile, spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { VERSION } from "@tritonjs/core/internal";
import { describe, expect, it } from "vitest";
import type { Option } from "../../src/options/option.js";
import { optionGroups } from "../../src/options/options.js";
import { commandLine, run } from "../../src/run.js";
import { TemporaryFolder } from "../support/temporary-folder.js";
import { TestTerminal } from "../support/test-terminal.js";

async function said(...args: string[]) {
  const terminal = new TestTerminal();
  const code = await run(args, terminal);
  return { code, output: terminal.output, errors: terminal.errors };
}

describe("the tritonjs command", () => {
  it("prints its version", async () => {
    expect(await said("--version")).toEqual({ code: 0, output: `${VERSION}\n`, errors: "" });
  });

  it.each([["--help"], ["serve", "--help"], ["serve", "-h"], ["config", "check", "--help"]])(
    "prints help on standard output: %s %s %s",
    async (...args) => {
      const { code, output, errors } = await said(...args.filter((arg) => arg !== undefined));
      expect({ code, errors }).toEqual({ code: 0, errors: "" });
      expect(output).toContain("Usage: tritonjs");
    },
  );

  it("passes the options of perf to the tools, and loads them for no other command", async () => {
    const { code, output } = await said("perf", "--help");
    expect(code).toBe(0);
    expect(output).toContain("--concurrency-range <range>");
    expect(await said("perf")).toEqual({
      code: 99,
      output: "",
      errors: "error: Invalid argument: -m: expected the name of a model\n",
    });
    const imports = readFileSync(new URL("../../src/run.ts", import.meta.url), "utf8");
    expect(imports).not.toMatch(/^import .*"\.\/(tools|perf|analyze|trace)\b/m);
  });

  it("prints an error on standard error for options without a command", async () => {
    const { code, output, errors } = await said("--model-repository=x");
    expect({ code, output }).toEqual({ code: 1, output: "" });
    expect(errors).toContain("Options of tritonserver go with 'tritonjs serve'");
  });

  it.each([
    [["serv"], "(Did you mean serve?)"],
    [["config", "chek"], "(Did you mean check?)"],
    [["types", "--ot", "x"], "(Did you mean --out?)"],
    [["serve", "--model-repositry=x"], "Did you mean '--model-repository'?"],
  ])("proposes what was meant: %j", async (args, proposal) => {
    const { code, errors } = await said(...args);
    expect(code).toBe(1);
    expect(errors).toContain(proposal);
    expect(errors).not.toContain("--grpc-keepalive-time");
  });

  it.each(["--openai-restricted-api=nonsense", "--http-port=x", "--trace-config=rate=often"])(
    "says what is wrong with %s without the usage, which would push it off the screen",
    async (option) => {
      const { code, errors } = await said("serve", "--model-repository=x", option);
      expect(code).toBe(1);
      expect(errors).toContain(
        `Bad option: "${option.slice(0, option.lastIndexOf("=")).replace("=rate", " rate")}"`,
      );
      expect(errors.trimEnd().split("\n")).toHaveLength(2);
    },
  );

  it("lists its commands when called without arguments", async () => {
    const { code, output, errors } = await said();
    expect({ code, output }).toEqual({ code: 1, output: "" });
    expect(errors).toContain("Usage: tritonjs");
  });

  it.each([["config"], ["nosuch"], ["config", "nosuch"], ["types"]])(
    "exits 1 for an unknown or incomplete command: %s %s",
    async (...args) => {
      const { code, output } = await said(...args.filter((arg) => arg !== undefined));
      expect({ code, output }).toEqual({ code: 1, output: "" });
    },
  );
});

describe("command line documentation", () => {
  it("the reference page has a row for each command, and for no other", () => {
    const { commands } = commandLine({
      terminal: new TestTerminal(),
      additions: {},
      finish: () => undefined,
    });
    const names = commands.flatMap((command) => {
      const below = command.commands.map((subcommand) => `${command.name()} ${subcommand.name()}`);
      return below.length > 0 ? below : [command.name()];
    });

    const page = readFileSync(new URL("../../../../docs/cli.md", import.meta.url), "utf8");
    const rows = [...page.matchAll(/^\| `tritonjs ([a-z ]+?)(?: [^a-z][^`]*)?` \|/gm)].map(
      ([, words]) => words!,
    );
    // The tools know the commands below some commands, such as those of `trace`.
    const documented = rows.map((words) => (names.includes(words) ? words : words.split(" ")[0]!));
    expect(documented.length).toBeGreaterThan(0);
    expect([...new Set(documented)].sort()).toEqual(names.sort());
  });
});

const options = Object.values(optionGroups).flatMap((group) =>
  Object.entries(group as Record<string, Option<unknown>>),
);

describe("the command-line reference page", () => {
  it("contains the table generated from the options", async () => {
    const script = fileURLToPath(new URL("../../scripts/write-options-table.mjs", import.meta.url));
    const { stdout } = await promisify(execFile)(process.execPath, [script, "--print"]);
    expect(await readFile(new URL("../../../../docs/cli.md", import.meta.url), "utf8")).toBe(stdout);
    expect(options.map(([name]) => name).filter((name) => !stdout.includes(`| \`--${name}`))).toEqual([]);
  });
});

describe("the help text", () => {
  it("names every option, and says which have no effect and why", async () => {
    const terminal = new TestTerminal();
    await run(["serve", "--help"], terminal);
    for (const [name, { noEffect }] of options) {
      const line = terminal.output.split("\n").find((text) => text.trimStart().split(" ")[0] === `--${name}`);
      expect(line, name).toBeDefined();
      if (noEffect !== undefined) expect(line, name).toContain(`Has no effect: ${noEffect}.`);
    }
  });
});

async function script(shell: string): Promise<string> {
  const terminal = new TestTerminal();
  expect(await run(["completion", shell], terminal)).toBe(0);
  return terminal.output;
}

const has = (program: string) => spawnSync(program, ["--version"]).error === undefined;

/** For the name of a test that needs the program. */
const without = (program: string) => (has(program) ? "" : ` (skipped: there is no ${program})`);

/** What bash proposes for each of the lines, in the given folder. */
async function proposals(lines: readonly string[], folder: string, wordBreaks = " ="): Promise<string[][]> {
  const tries = lines.map((line) => {
    return `COMP_LINE='${line}'; COMP_POINT=${line.length}; _tritonjs; printf '%s\\t' "\${COMPREPLY[@]}"; echo`;
  });
  const text = [await script("bash"), `cd '${folder}'`, `COMP_WORDBREAKS='${wordBreaks}'`, ...tries].join(
    "\n",
  );
  const { stdout } = await promisify(execFile)("bash", ["--norc", "--noprofile", "-c", text]);
  return stdout
    .split("\n")
    .slice(0, lines.length)
    .map((line) => line.split("\t").filter((word) => word !== ""));
}

describe.skipIf(!has("bash"))(`the completion of bash${without("bash")}`, () => {
  it("proposes commands, options, values, files and directories", async () => {
    await using folder = await TemporaryFolder.create({ "my models/": "", "models.json": "{}" });
    const expected: Record<string, string[]> = {
      "tritonjs s": ["serve", "stub"],
      "tritonjs config ch": ["check"],
      "tritonjs serve --http-opena": ["--http-openapi"],
      "tritonjs serve --log-format ": ["default", "ISO8601", "json"],
      "tritonjs serve --log-format=j": ["json"],
      "tritonjs serve --id x --allow-http f": ["false"],
      "tritonjs serve --http-port ": [],
      "tritonjs serve --model-repository m": ["my models"],
      "tritonjs serve --config=m": ["models.json", "my models"],
      "tritonjs config check --js": ["--json"],
      "tritonjs config check mod": ["models.json"],
      "tritonjs completion z": ["zsh"],
      "tritonjs nosuch --x": [],
    };
    const got = await proposals(Object.keys(expected), folder.path);
    expect(Object.fromEntries(Object.keys(expected).map((line, i) => [line, got[i]?.sort()]))).toEqual(
      Object.fromEntries(Object.entries(expected).map(([line, words]) => [line, words.sort()])),
    );
  });

  it("keeps the option where bash does not split at equals signs", async () => {
    const [words] = await proposals(["tritonjs serve --log-format=j"], "/", " ");
    expect(words).toEqual(["--log-format=json"]);
  });
});

for (const shell of ["zsh", "fish"]) {
  it.skipIf(!has(shell))(`the completion of ${shell} is a valid script${without(shell)}`, async () => {
    await using folder = await TemporaryFolder.create({ script: await script(shell) });
    await promisify(execFile)(shell, ["-n", `${folder.path}/script`]);
  });
}

it.each([
  [
    "zsh",
    '\'--log-format=[Format of the log\\: "default", "ISO8601", or "json" for an object on each line]:value:(default ISO8601 json)\'',
  ],
  ["zsh", "'*--model-repository=["],
  ["zsh", "_tritonjs_config_check() {"],
  ["fish", "-n '__fish_seen_subcommand_from serve' -l model-repository -d "],
  ["fish", "-x -a '(__fish_complete_directories)'"],
  [
    "fish",
    "-n '__fish_seen_subcommand_from config; and not __fish_seen_subcommand_from check show' -a check",
  ],
])("the completion of %s has the line %s", async (shell, part) => {
  expect(await script(shell)).toContain(part);
});

it("names the shells for another one", async () => {
  const terminal = new TestTerminal();
  expect(await run(["completion", "tcsh"], terminal)).toBe(1);
  expect(terminal.errors).toContain("Allowed choices are bash, zsh, fish.");
});
