import { mkdirSync, readdirSync, readFileSync } from "node:fs";
import { rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Log } from "@tritonjs/core/extension";
import { everyMs, PRIVATE_DIRECTORY, PRIVATE_FILE, realClock } from "@tritonjs/core/internal";
import { errorFor, TritonError } from "@tritonjs/protocol";
import type { SavedRollout } from "./rollout.js";
import type { RolloutOptions } from "./rollout-options.js";

/** A rollout as a file holds it. */
export interface RolloutFile {
  readonly model: string;
  /** Options without the functions. */
  readonly options: RolloutOptions;
  readonly saved: SavedRollout;
}

const ENDING = ".rollout.json";
const WARN_EVERY_MS = 60_000;

/**
 * The states of rollouts in a directory: a file for each model, which only its owner may read, because the reference of
 * drift has values of requests. A file is replaced as a whole. If the disk is full or
 * the directory vanishes, the log says so, and the rollout continues without being saved.
 */
export class RolloutFiles {
  readonly #mayWarn = everyMs(realClock, WARN_EVERY_MS);
  /** Writes by model, one after another; a later state replaces one that waits. */
  readonly #waiting = new Map<string, RolloutFile | undefined>();
  readonly #writing = new Map<string, Promise<void>>();

  /** @throws TritonError INVALID_ARG for a directory that cannot be made */
  constructor(
    readonly directory: string,
    private readonly log: Log,
  ) {
    try {
      mkdirSync(directory, PRIVATE_DIRECTORY);
    } catch (error) {
      const why = TritonError.from(error).message;
      throw errorFor("INVALID_ROLLOUT", `cannot make the directory of rollouts '${directory}': ${why}`);
    }
  }

  /** All states in the directory. Files that cannot be read are left out, and the log says why. */
  readAll(): RolloutFile[] {
    const names = readdirSync(this.directory).filter((name) => name.endsWith(ENDING));
    return names.flatMap((name) => this.#readFile(join(this.directory, name)) ?? []);
  }

  /** The state of a model's rollout; undefined without one. */
  read(model: string): RolloutFile | undefined {
    return this.#readFile(this.#pathOf(model));
  }

  write(file: RolloutFile): void {
    this.#waiting.set(file.model, file);
    this.#begin(file.model);
  }

  remove(model: string): void {
    this.#waiting.set(model, undefined);
    this.#begin(model);
  }

  /** Resolves when all states are written. */
  async settled(): Promise<void> {
    while (this.#writing.size > 0) await Promise.all(this.#writing.values());
  }

  #begin(model: string): void {
    if (this.#writing.has(model)) return;
    const writing = this.#writeAll(model).finally(() => this.#writing.delete(model));
    this.#writing.set(model, writing);
  }

  async #writeAll(model: string): Promise<void> {
    const path = this.#pathOf(model);
    while (this.#waiting.has(model)) {
      const file = this.#waiting.get(model);
      this.#waiting.delete(model);
      try {
        if (file === undefined) await rm(path, { force: true });
        else {
          await writeFile(`${path}.new`, JSON.stringify(file), PRIVATE_FILE);
          await rename(`${path}.new`, path);
        }
      } catch (error) {
        if (!this.#mayWarn()) continue;
        const why = TritonError.from(error).message;
        this.log.warning(`cannot save the rollout of model '${model}' in '${path}': ${why}`, { model });
      }
    }
  }

  #readFile(path: string): RolloutFile | undefined {
    let text: string;
    try {
      text = readFileSync(path, "utf8");
    } catch {
      return undefined;
    }
    try {
      const file = JSON.parse(text) as RolloutFile;
      if (typeof file.model === "string" && typeof file.saved?.to === "number") return file;
    } catch {
      // Said below.
    }
    this.log.warning(
      `cannot read the state of a rollout in '${path}': expected JSON with a model and its state`,
    );
    return undefined;
  }

  #pathOf(model: string): string {
    return join(this.directory, `${encodeURIComponent(model)}${ENDING}`);
  }
}
