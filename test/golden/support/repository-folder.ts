import { mkdir, mkdtemp, rm, utimes, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";

/** Contents of files by path; a path that ends in `/` is an empty directory. */
type Files = Readonly<Record<string, string | Uint8Array>>;

/** A model repository on disk, for one test. */
export class RepositoryFolder {
  private constructor(readonly path: string) {}

  /** @param place distinguishes repositories of one server, in the order of their names */
  static async create(files: Files, place = 1): Promise<RepositoryFolder> {
    const folder = new RepositoryFolder(await mkdtemp(join(tmpdir(), `tritonjs-golden-${place}-`)));
    await folder.write(files);
    return folder;
  }

  async write(files: Files): Promise<void> {
    for (const [name, text] of Object.entries(files)) {
      const path = join(this.path, name);
      if (name.endsWith("/")) await mkdir(path, { recursive: true });
      else {
        await mkdir(dirname(path), { recursive: true });
        await writeFile(path, text);
      }
    }
  }

  async delete(names: readonly string[]): Promise<void> {
    for (const name of names) await rm(join(this.path, name), { recursive: true });
  }

  async touch(names: readonly string[]): Promise<void> {
    const now = new Date();
    for (const name of names) await utimes(join(this.path, name), now, now);
  }

  remove(): Promise<void> {
    return rm(this.path, { recursive: true, force: true });
  }
}
