import { join } from "node:path";
import { LocalSource } from "./local-source.js";
import type { ModelPlace } from "./repository-source.js";

/** A directory of models, some of which are served under names other than those of their directories. */
export class MappedSource extends LocalSource {
  /** Directories by the names of their models. */
  readonly #directories: ReadonlyMap<string, string>;

  /** @param directories directories by the names of their models; a directory that is not listed names its model */
  constructor(path: string, directories: ReadonlyMap<string, string>) {
    super(path);
    this.#directories = directories;
  }

  override async names(): Promise<readonly string[]> {
    const renamed = new Set(this.#directories.values());
    const others = (await super.names()).filter((directory) => !renamed.has(directory));
    return [...this.#directories.keys(), ...others].sort();
  }

  override async has(name: string): Promise<boolean> {
    const directory = this.#directories.get(name);
    if (directory !== undefined) return super.has(directory);
    return ![...this.#directories.values()].includes(name) && (await super.has(name));
  }

  override async open(name: string): Promise<ModelPlace> {
    const directory = this.#directories.get(name);
    if (directory === undefined) return super.open(name);
    return { root: this.path, directory: join(this.path, directory), isRenamed: true };
  }

  override listed(): Promise<readonly string[]> {
    return this.names().catch(() => []);
  }
}
