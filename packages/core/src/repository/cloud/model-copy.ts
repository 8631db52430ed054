import { rm } from "node:fs/promises";
import { dirname } from "node:path";
import type { ModelTimes } from "../layout/model-times.js";
import { type ModelObject, timesOf } from "./model-listing.js";

/** A model of a cloud as it was once, on this machine. Its files stay as they are for as long as somebody needs them. */
export class ModelCopy {
  #users = 0;
  #isDropped = false;

  constructor(
    /** Named after the model, in a directory of its own. */
    readonly directory: string,
    readonly objects: readonly ModelObject[],
  ) {}

  get root(): string {
    return dirname(this.directory);
  }

  /** State of the model, to tell whether something changed. */
  times(configEntry: string): ModelTimes {
    return timesOf(this.objects, configEntry);
  }

  /** A version is made of it. */
  retain(): void {
    this.#users++;
  }

  /** A version is gone. */
  async release(): Promise<void> {
    this.#users--;
    if (this.#isDropped && this.#users <= 0) await this.#remove();
  }

  /** Nobody will load it again: it goes with the last version that is made of it. */
  async drop(): Promise<void> {
    this.#isDropped = true;
    if (this.#users <= 0) await this.#remove();
  }

  async #remove(): Promise<void> {
    await rm(this.root, { recursive: true, force: true }).catch(() => {});
  }
}
