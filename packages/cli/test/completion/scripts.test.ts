import { execFile, spawnSync } from "node:child_process";
import { promisify } from "node:util";
import { describe, expect, it } from "vitest";
import { run } from "../../src/run.js";
import { TemporaryFolder } from "../support/temporary-folder.js";
import { TestTerminal } from "../support/test-terminal.js";

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
