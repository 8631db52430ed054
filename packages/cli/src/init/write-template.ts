import { mkdir, readdir, readFile, stat, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { VERSION } from "@tritonjs/core/frontend";
import { sampleRepository } from "./sample-repository.js";

/** What `tritonjs init --template` writes. */
export const TEMPLATES = ["repository", "app", "service"] as const;

export type TemplateName = (typeof TEMPLATES)[number];

const FOLDER = fileURLToPath(new URL("../../templates/", import.meta.url));

/** The result of {@link writeTemplate}. */
export interface WrittenTemplate {
  readonly written: readonly string[];
  /** Existing files, which were not changed. */
  readonly kept: readonly string[];
}

/**
 * Writes a model repository with a sample, or a program with such a repository in its folder `models`. Existing files
 * are not overwritten.
 */
export async function writeTemplate(template: TemplateName, folder: string): Promise<WrittenTemplate> {
  const files = template === "repository" ? sampleRepository(folder) : await programFiles(template);
  const written: string[] = [];
  const kept: string[] = [];
  for (const [name, content] of Object.entries(files)) {
    const path = join(folder, name);
    await mkdir(dirname(path), { recursive: true });
    const isNew = await writeNew(path, content);
    (isNew ? written : kept).push(path);
  }
  return { written, kept };
}

async function programFiles(template: TemplateName): Promise<Record<string, string | Uint8Array>> {
  const files: Record<string, string | Uint8Array> = {};
  for (const path of await readdir(join(FOLDER, template), { recursive: true })) {
    if ((await stat(join(FOLDER, template, path))).isDirectory()) continue;
    const text = await readFile(join(FOLDER, template, path), "utf8");
    // npm leaves a file that is called .gitignore out of a package.
    const name = path === "gitignore" ? ".gitignore" : path;
    files[name] = path === "package.json" ? text.replaceAll("VERSION", VERSION) : text;
  }
  for (const [path, content] of Object.entries(sampleRepository("models")))
    files[join("models", path)] = content;
  return files;
}

async function writeNew(path: string, content: string | Uint8Array): Promise<boolean> {
  try {
    await writeFile(path, content, { flag: "wx" });
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EEXIST") return false;
    throw error;
  }
}
