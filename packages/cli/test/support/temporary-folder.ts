import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";

/** Temporary folder of one test. */
export class TemporaryFolder implements AsyncDisposable {
  private constructor(readonly path: string) {}

  /** Writes files by path; a path that ends in `/` becomes an empty directory. */
  static async create(files: Readonly<Record<string, string | Uint8Array>> = {}): Promise<TemporaryFolder> {
    const folder = new TemporaryFolder(await mkdtemp(join(tmpdir(), "tritonjs-cli-")));
    for (const [name, content] of Object.entries(files)) await folder.write(name, content);
    return folder;
  }

  async write(name: string, content: string | Uint8Array): Promise<string> {
    const path = join(this.path, name);
    await mkdir(name.endsWith("/") ? path : dirname(path), { recursive: true });
    if (!name.endsWith("/")) await writeFile(path, content);
    return path;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return rm(this.path, { recursive: true, force: true });
  }
}
