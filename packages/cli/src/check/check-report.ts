import { relative } from "node:path";
import { type Finding, isCloudPath, type ModelInspection } from "@tritonjs/core/config";
import { suggestFix } from "./suggest-fix.js";

/** A finding with a suggested fix. */
export interface Advice extends Finding {
  readonly model: string;
  readonly fix?: string;
}

/** The findings of a repository. */
export interface CheckReport {
  readonly models: number;
  readonly errors: number;
  readonly warnings: number;
  readonly findings: readonly Advice[];
}

/** Combines the findings of models. */
export function checkReport(models: readonly ModelInspection[]): CheckReport {
  const findings = models.flatMap(({ name, findings }) => findings.map((finding) => advise(name, finding)));
  const count = (severity: Finding["severity"]) =>
    findings.filter((finding) => finding.severity === severity).length;
  return { models: models.length, errors: count("error"), warnings: count("warning"), findings };
}

/** Formats the report as text: one line for each finding, in the style of compilers, with the fix below. */
export function reportText({ models, errors, warnings, findings }: CheckReport): string {
  const lines = findings.flatMap(({ path, line, column, severity, message, fix }) => {
    const place = [shown(path), line, column].filter((part) => part !== undefined);
    const text = `${place.join(":")}: ${severity}: ${message}`;
    return fix === undefined ? [text] : [text, `    fix: ${fix}`];
  });
  const summary = `${counted(models, "model")}: ${counted(errors, "error")}, ${counted(warnings, "warning")}`;
  return `${[...lines, summary].join("\n")}\n`;
}

/** Shortens a path to one relative to the working directory, if the path is inside it. */
function shown(path: string): string {
  if (isCloudPath(path)) return path;
  const short = relative(process.cwd(), path);
  return short === "" || short.startsWith("..") ? path : short;
}

function advise(model: string, finding: Finding): Advice {
  const fix = suggestFix(finding.message);
  return { model, ...finding, ...(fix === undefined ? {} : { fix }) };
}

function counted(count: number, word: string): string {
  return `${count} ${word}${count === 1 ? "" : "s"}`;
}
