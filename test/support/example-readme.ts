import { readFileSync } from "node:fs";
import { join } from "node:path";
import { repositoryRoot } from "./repository.js";

/** Path of an example's folder. */
export function exampleFolder(name: string): string {
  return join(repositoryRoot, "examples", name);
}

/** Text of an example's README. */
export function readExampleReadme(name: string): string {
  return readFileSync(join(exampleFolder(name), "README.md"), "utf8").replaceAll("\r\n", "\n");
}

/**
 * What an example prints according to its README, as a pattern for the whole output. In a line, `...` stands for the
 * part that varies; alone on a line, it stands for any lines.
 */
export function promisedOutput(name: string): RegExp {
  return patternOf(promisedLines(name));
}

/** What one program of an example prints: the part of the README's output below `== <program>`, and that line. */
export function promisedSection(name: string, program: string): RegExp {
  const lines = promisedLines(name);
  const start = lines.indexOf(`== ${program}`);
  if (start < 0) throw new Error(`examples/${name}/README.md: expected the output of ${program}, got none`);
  const end = lines.findIndex((line, i) => i > start && line.startsWith("== "));
  return patternOf(lines.slice(start, end < 0 ? undefined : end));
}

function promisedLines(name: string): readonly string[] {
  const [, block] = /^```text\n(.*?)^```$/ms.exec(readExampleReadme(name)) ?? [];
  if (block !== undefined) return block.trimEnd().split("\n");
  throw new Error(`examples/${name}/README.md: expected a block of output, got none`);
}

function patternOf(lines: readonly string[]): RegExp {
  const pattern = lines.map((line) => (line === "..." ? "(?:.*\\n)*?" : `${lineParts(line)}\\n`)).join("");
  return new RegExp(`^${pattern}$`);
}

function lineParts(line: string): string {
  return line
    .split("...")
    .map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"))
    .join(".*");
}
