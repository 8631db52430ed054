import { writeFile } from "node:fs/promises";
import { basename, dirname, join } from "node:path";

/**
 * Writes the file of a report.
 *
 * @returns undefined, or the text of the fault, for instance of a full disk
 */
export async function writeReport(path: string, text: string): Promise<string | undefined> {
  try {
    await writeFile(path, text);
    return undefined;
  } catch (error) {
    return reportFault(path, error);
  }
}

/** Text for a report file that could not be written. */
export function reportFault(path: string, error: unknown): string {
  return `cannot write ${path}: ${error instanceof Error ? error.message : String(error)}`;
}

/** Path of the CSV file of a composing model: its name and version before the file's own name. */
export function composingPath(
  path: string,
  { name, version }: { readonly name: string; readonly version: string },
) {
  // The name comes from a server, so it must not lead elsewhere.
  const safe = `${name}_v${version}`.replaceAll(/[/\\]/g, "_");
  return join(dirname(path), `${safe}.${basename(path)}`);
}
