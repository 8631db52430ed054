import type { LevelResult } from "../measure/level-result.js";
import { csvFiles } from "../report/csv-report.js";
import { figuresJson } from "../report/figures-json.js";
import { htmlReport } from "../report/html/html-report.js";
import type { RunDescription } from "../report/run-description.js";
import { composingPath, writeReport } from "../report/write-report.js";
import type { ReportSettings } from "./perf-settings.js";

/**
 * Writes the files of the reports. A file that cannot be written keeps no other from being written.
 *
 * @returns texts of the faults
 */
export async function writeReports(
  results: readonly LevelResult[],
  run: RunDescription,
  { csv, verboseCsv, json, html }: ReportSettings,
  warnings: readonly string[],
): Promise<string[]> {
  const files: { readonly path: string; readonly text: string }[] = [];
  if (csv !== undefined) {
    for (const { model, text } of csvFiles(results, run, verboseCsv)) {
      files.push({ path: model === undefined ? csv : composingPath(csv, model), text });
    }
  }
  if (json !== undefined) files.push({ path: json, text: figuresJson(results, run) });
  if (html !== undefined) files.push({ path: html, text: htmlReport(results, run, warnings) });
  const faults = await Promise.all(files.map(({ path, text }) => writeReport(path, text)));
  return faults.flatMap((fault) => fault ?? []);
}
