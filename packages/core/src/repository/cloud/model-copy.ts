import { rm } from "node:fs/promises";
import { dirname } from "node:path";
import type { ModelTimes } from "../layout/model-times.js";
import { type ModelObject, timesOf } from "./model-listing.js";

/** A snapshot of a cloud model on this machine. Its files do not change while they are in use. */
export class ModelCopy {
  #users = 0;
  #isDropped = false;

  constructor(
    /** Directory with the name of the model, inside a directory of its own. */
    readonly directory: string,
    readonly objects: readonly ModelObject[],
  ) {}

  get root(): string {
    return dirname(this.directory);
  }

  /** State of the model, to detect changes. */
  times(configEntry: string): ModelTimes {
    return timesOf(this.objects, configEntry);
  }

  /** Holds the copy for a version. */
  retain(): void {
    this.#users++;
  }

  /** Releases the copy for a version. */
  async release(): Promise<void> {
    this.#users--;
    if (this.#isDropped && this.#users <= 0) await this.#remove();
  }

  /** Marks the copy as obsolete. It is removed with the last version that is made of it. */
  async drop(): Promise<void> {
    this.#isDropped = true;
    if (this.#users <= 0) await this.#remove();
  }

  async #remove(): Promise<void> {
    await rm(this.root, { recursive: true, force: true }).catch(() => {});
  }
}
