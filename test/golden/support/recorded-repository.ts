import { cp, mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { RecordedModel } from "./served-models.js";

/** Files of a recorded server's models, as they were on its disk, in a folder for one test. */
export class RecordedRepository {
  private constructor(readonly path: string) {}

  /**
   * @param folder inside `data`
   * @param models the same models in words: versions without a file are not among the files
   */
  static async create(
    folder: string,
    models: Readonly<Record<string, RecordedModel>>,
  ): Promise<RecordedRepository> {
    const path = await mkdtemp(join(tmpdir(), "tritonjs-golden-"));
    await cp(fileURLToPath(new URL(`../data/${folder}`, import.meta.url)), path, { recursive: true });
    for (const [name, { versions = [1], behaviour = "" }] of Object.entries(models)) {
      if (/^No version (directory|folder)/.test(behaviour)) continue;
      for (const version of versions) await mkdir(join(path, name, String(version)), { recursive: true });
    }
    return new RecordedRepository(path);
  }

  remove(): Promise<void> {
    return rm(this.path, { recursive: true, force: true });
  }
}
