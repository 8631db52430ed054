import type { CommandCase } from "./command-case.js";

/** Begins an expected line that is a regular expression. */
const PATTERN = "\u0000";

function isPattern(line: string): boolean {
  return line.startsWith(PATTERN);
}

/** Replaces text that differs from run to run by its recorded form. */
export type Mask = (text: string) => string;

/**
 * The part of the recorded output about the command line: all of it except the help; of a log only errors and
 * started services, without tables.
 */
export function expectedOutput(recorded: CommandCase): string[] {
  const { output, output_before_usage: before = [], output_after_usage: after = [] } = recorded;
  const lines = [...before, ...(output ?? []), ...after]
    .map((line) => line.replace("<INSTALL>/bin/tritonserver:", "tritonjs:"))
    .map((line) => line.replace(/^([EWIV]) \S+\.cc\] /, "$1 ").replace(/ "$/, '"'));
  return output === undefined
    ? lines.filter(isWritten)
    : lines.filter((line) => isCompared(line) || isPattern(line));
}

/** The same part of a command's output. */
export function comparableOutput({ output }: CommandCase, text: string, mask: Mask): string[] {
  const lines = mask(withoutUsage(text))
    .split("\n")
    .map((line) => line.replace(/^(?:([EWIV])\d{4} [\d:.]+|\S+Z ([EWIV])) \d+ [\w-]+:0\] /, "$1$2 "));
  return output === undefined ? lines.filter(isWritten) : lines.filter(isCompared);
}

/** The output of the program without its help. */
function withoutUsage(text: string): string {
  const start = text.indexOf("Usage: tritonjs serve");
  if (start < 0) return text;
  const lines = text.slice(start).split("\n");
  const end = lines.findLastIndex((line) => line.startsWith("  "));
  return text.slice(0, start) + lines.slice(end + 1).join("\n");
}

function isWritten(line: string): boolean {
  return line.trim() !== "";
}

function isCompared(line: string): boolean {
  if (/^[IV] /.test(line)) return line.includes('"Started ');
  return /^(E |Warning: |Signal |error: |Failed to build)/.test(line);
}

/** An expected line that is recognised by its start and further parts. */
export function pattern(start: string, rest = ""): string {
  return `${PATTERN}^${start.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")}.*${rest}`;
}

/** True for the expected lines. */
export function areLines(expected: readonly string[], got: readonly string[]): boolean {
  const isLine = (line: string, other = "") =>
    isPattern(line) ? new RegExp(line.slice(1)).test(other) : line === other;
  return expected.length === got.length && expected.every((line, i) => isLine(line, got[i]));
}
