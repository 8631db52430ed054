import { mkdir, mkdtemp, realpath, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { TritonError } from "@tritonjs/protocol";
import type { CloudPath } from "./cloud-path.js";
import { type CopyContext, copyModel } from "./copy-model.js";
import { ModelCopy } from "./model-copy.js";
import type { ModelListing } from "./model-listing.js";

/** The environment variables that tell Triton where to put copies. */
const MOUNT_DIRECTORY: Readonly<Record<CloudPath["scheme"], string>> = {
  s3: "TRITON_AWS_MOUNT_DIRECTORY",
  gs: "TRITON_GCS_MOUNT_DIRECTORY",
  as: "TRITON_AZURE_MOUNT_DIRECTORY",
};

/** The copies of one repository, in a temporary directory of their own. */
export class Copies {
  readonly #live = new Set<ModelCopy>();
  #directory: Promise<string> | undefined;
  #made = 0;

  constructor(private readonly path: CloudPath) {}

  /** Copies a model. @throws TritonError as `copyModel`, and INTERNAL when the directory cannot be made */
  async make({ name, objects }: ModelListing, context: CopyContext): Promise<ModelCopy> {
    const root = join(await this.#open(), String(++this.#made));
    const copy = new ModelCopy(join(root, name), objects);
    try {
      await mkdir(root);
      await copyModel(copy.directory, objects, context);
    } catch (error) {
      await copy.drop();
      throw error;
    }
    this.#live.add(copy);
    return copy;
  }

  /** Drops all copies except the given ones. A copy that a version is made of stays as long as the version. */
  keep(needed: (copy: ModelCopy) => boolean): void {
    for (const copy of this.#live) {
      if (needed(copy)) continue;
      this.#live.delete(copy);
      void copy.drop();
    }
  }

  /** Removes all copies, including those in use. */
  async close(): Promise<void> {
    const directory = await this.#directory?.catch(() => undefined);
    if (directory !== undefined) await rm(directory, { recursive: true, force: true }).catch(() => {});
  }

  async #open(): Promise<string> {
    this.#directory ??= makeDirectory(MOUNT_DIRECTORY[this.path.scheme]);
    try {
      return await this.#directory;
    } catch (error) {
      this.#directory = undefined;
      throw error;
    }
  }
}

async function makeDirectory(variable: string): Promise<string> {
  const parent = process.env[variable] || tmpdir();
  try {
    return await realpath(await mkdtemp(join(parent, "tritonjs-")));
  } catch (cause) {
    const why = TritonError.from(cause).message;
    const text = `cannot make a directory for copies of cloud repositories in ${parent}: ${why}; set ${variable} to use another place`;
    throw new TritonError("INTERNAL", text, { reason: "FILE_NOT_READABLE", cause });
  }
}
