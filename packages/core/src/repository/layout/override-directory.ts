import { mkdir, mkdtemp, realpath, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { TritonError } from "@tritonjs/protocol";
import { isInside } from "../../files/path-containment.js";

/** A directory for the files of a load request. It exists while a model is made of them. */
export class OverrideDirectory {
  /** The creator is the first user. */
  #users = 1;

  private constructor(
    readonly path: string,
    private readonly live: Set<OverrideDirectory>,
  ) {
    live.add(this);
  }

  /**
   * Makes the directory for the files of a load request. Returns undefined when the request has no files.
   *
   * @param live all existing directories, including this one until it is removed
   * @throws TritonError INVALID_ARG for files without a configuration, and as `create`.
   */
  static async forLoad(
    config: string | undefined,
    files: ReadonlyMap<string, Uint8Array> | undefined,
    live: Set<OverrideDirectory>,
  ): Promise<OverrideDirectory | undefined> {
    if (files === undefined || files.size === 0) return undefined;
    if (config !== undefined) return OverrideDirectory.create(files, live);
    const text = "Load parameter 'config' must be specified for model file override";
    throw new TritonError("INVALID_ARG", text, { reason: "INVALID_LOAD_REQUEST" });
  }

  /**
   * Writes files into a directory of their own.
   *
   * @param files contents by path below the model's directory: `1/model.onnx`
   * @throws TritonError INVALID_ARG for a path that leads out of the directory, or that cannot be a file.
   */
  static async create(
    files: ReadonlyMap<string, Uint8Array>,
    live: Set<OverrideDirectory>,
  ): Promise<OverrideDirectory> {
    const path = await realpath(await mkdtemp(join(tmpdir(), "tritonjs-")));
    const directory = new OverrideDirectory(path, live);
    try {
      for (const [name, bytes] of files) await directory.#write(name, bytes);
    } catch (error) {
      await directory.remove();
      throw error;
    }
    return directory;
  }

  /** Adds a user of the files. */
  retain(): void {
    this.#users++;
  }

  /** Removes a user of the files. The directory is removed with the last. */
  async release(): Promise<void> {
    this.#users--;
    if (this.#users <= 0) await this.remove();
  }

  /** Removes the directory, even if it is in use. */
  async remove(): Promise<void> {
    this.live.delete(this);
    await rm(this.path, { recursive: true, force: true }).catch(() => {});
  }

  async #write(name: string, bytes: Uint8Array): Promise<void> {
    const path = join(this.path, name);
    if (!isInside(this.path, path)) {
      throw new TritonError(
        "INVALID_ARG",
        `Invalid file parameter 'file:${name}' with normalized path '${path}' must stay within model directory.`,
        { reason: "INVALID_LOAD_REQUEST" },
      );
    }
    try {
      await mkdir(dirname(path), { recursive: true });
      await writeFile(path, bytes, { flag: "wx" });
    } catch (cause) {
      const why = TritonError.from(cause).message;
      throw new TritonError("INVALID_ARG", `Invalid file parameter 'file:${name}': ${why}`, {
        reason: "INVALID_LOAD_REQUEST",
        cause,
      });
    }
  }
}
