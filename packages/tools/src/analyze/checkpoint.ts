import { mkdir, readFile, rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { invalidOption } from "../data/invalid-option.js";
import { reportFault } from "../report/write-report.js";
import type { CandidateResult } from "./candidate-result.js";

/** Version of the file; others are refused. */
const FORMAT = 1;

interface CheckpointFile {
  readonly format: number;
  readonly fingerprint: string;
  readonly results: readonly CandidateResult[];
}

/** File of everything that was measured, so that an interrupted search can go on. */
export class Checkpoint {
  readonly path: string;
  /** Text of the fault of the last write; undefined after a write that succeeded. */
  fault: string | undefined;
  readonly #folder: string;
  readonly #fingerprint: string;

  /** @param fingerprint text that is equal for measurements that may be used together */
  constructor(folder: string, fingerprint: string) {
    this.#folder = folder;
    this.path = join(folder, "checkpoint.json");
    this.#fingerprint = fingerprint;
  }

  /**
   * Reads the results of an earlier search; none without a file.
   *
   * @throws TritonError INVALID_ARG for a file of another search, or one that cannot be read
   */
  async read(): Promise<readonly CandidateResult[]> {
    let text: string;
    try {
      text = await readFile(this.path, "utf8");
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "ENOENT") return [];
      throw invalidOption(`cannot read the checkpoint ${this.path}: ${(error as Error).message}`, error);
    }
    const advice = "remove the file, or give another --export-path";
    let file: CheckpointFile;
    try {
      file = JSON.parse(text, (_, value) => (value === NO_NUMBER ? Number.NaN : value)) as CheckpointFile;
    } catch (error) {
      const { message } = error as Error;
      throw invalidOption(`checkpoint ${this.path}: expected JSON, got ${message}; ${advice}`, error);
    }
    if (file.format !== FORMAT || !Array.isArray(file.results)) {
      throw invalidOption(
        `checkpoint ${this.path}: expected format ${FORMAT}, got ${file.format}; ${advice}`,
      );
    }
    if (file.fingerprint !== this.#fingerprint) {
      throw invalidOption(
        `checkpoint ${this.path}: expected measurements of the same models and load, got those of another ` +
          `search; ${advice}`,
      );
    }
    return file.results;
  }

  /**
   * Writes the file, so that a crash leaves the old one or the new one. It does not throw, because a full disk must not
   * end the search: see `fault`.
   */
  async write(results: readonly CandidateResult[]): Promise<void> {
    const file: CheckpointFile = { format: FORMAT, fingerprint: this.#fingerprint, results };
    const text = JSON.stringify(file, (_, value) => (Number.isNaN(value) ? NO_NUMBER : value), 1);
    try {
      await mkdir(this.#folder, { recursive: true });
      await writeFile(`${this.path}.new`, text);
      await rename(`${this.path}.new`, this.path);
      this.fault = undefined;
    } catch (error) {
      this.fault = reportFault(this.path, error);
    }
  }
}

/** JSON has no NaN. */
const NO_NUMBER = "NaN";
