import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { analyzeOptions, readAnalyzeSettings } from "../../../../src/analyze/analyze-settings.js";

const page = readFileSync(
  fileURLToPath(new URL("../../../../../../docs/performance-tools.md", import.meta.url)),
  "utf8",
).replaceAll("\r\n", "\n");

/** The text that `--help` shows. */
function helpText(): string {
  let help = "";
  analyzeOptions("0")
    .configureOutput({
      writeOut: (text) => {
        help += text;
      },
    })
    .outputHelp();
  return help;
}

const lines = [
  ...page.matchAll(/^tritonjs analyze .*$/gm),
  ...helpText().matchAll(/(?<=\$ )tritonjs analyze .*$/gm),
].map(([line]) => line);

describe("the page about tritonjs analyze", () => {
  it.each(lines)("has a command that is read: %s", (line) => {
    const command = analyzeOptions("0").exitOverride();
    command.parse(line.split(" ").slice(2), { from: "user" });
    expect(readAnalyzeSettings(command.opts(), line).models.length).toBeGreaterThan(0);
  });

  it("lists every option of the command, and no other", () => {
    const [, section = ""] = /\n## Analyze\n(.*?)(?=\n## |$(?![\s\S]))/s.exec(page) ?? [];
    const [table = ""] = /\| models \|.*?(?=\n\n)/s.exec(section) ?? [];
    const listed = [...table.matchAll(/`(--[\w-]+)`/g)].map(([, name]) => name!);
    expect(listed.toSorted()).toEqual(
      analyzeOptions("")
        .options.flatMap(({ long }) => long ?? [])
        .filter((name) => name !== "--version")
        .toSorted(),
    );
  });
});
