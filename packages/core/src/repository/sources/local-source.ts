import { stat } from "node:fs/promises";
import { join } from "node:path";
import { TritonError } from "@tritonjs/protocol";
import { exists } from "../../files/read-small-file.js";
import { modelNames } from "../layout/list-directory.js";
import type { ModelPlace, RepositorySource } from "./repository-source.js";

/** A directory of models, which are served in place. */
export class LocalSource implements RepositorySource {
  readonly isRemote = false;

  constructor(readonly path: string) {}

  async check(): Promise<void> {
    const found = await stat(this.path).catch(() => undefined);
    if (found === undefined)
      throw new TritonError("INTERNAL", `failed to stat file ${this.path}`, { reason: "FILE_NOT_READABLE" });
    if (!found.isDirectory()) {
      throw new TritonError("INVALID_ARG", `repository path ${this.path} is not a valid directory`, {
        reason: "INVALID_REPOSITORY",
      });
    }
  }

  async refresh(): Promise<void> {}

  names(): Promise<readonly string[]> {
    return modelNames(this.path);
  }

  has(name: string): Promise<boolean> {
    return exists(join(this.path, name));
  }

  problemOf(): undefined {}

  async open(name: string): Promise<ModelPlace> {
    return { root: this.path, directory: join(this.path, name) };
  }

  listed(): Promise<readonly string[]> {
    return modelNames(this.path).catch(() => []);
  }

  sweep(): void {}

  abort(): void {}

  async close(): Promise<void> {}
}
