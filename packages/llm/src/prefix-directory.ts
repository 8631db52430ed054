import { randomUUID } from "node:crypto";
import { chmod, mkdir, readdir, readFile, rename, stat, unlink, utimes } from "node:fs/promises";
import { join } from "node:path";
import { errorFor } from "@tritonjs/protocol";

/** Largest size of a directory of prefixes unless an option says otherwise. */
const DEFAULT_PREFIX_BYTES = 1024 ** 3;

/** Files of prefixes: a hash, and the kind of the file. */
const OWN_FILE = /^[0-9a-f]{64}\.(kv|llama|json)$/;

/** Files that are still written, or whose process ended before they were complete. */
const UNFINISHED_FILE = /^[0-9a-f]{64}\.(kv|llama|json)\.[0-9a-f-]{36}\.tmp$/;

/** Age at which an unfinished file belongs to no process any more. */
const ABANDONED_MS = 60 * 60 * 1000;

/** Pause after a file could not be written, for example because the disk is full. */
const PAUSE_MS = 60 * 1000;

/** The directory is listed again after this share of its limit was written, because other processes write there too. */
const SHARE_BETWEEN_LISTINGS = 1 / 16;

interface ListedFile {
  readonly path: string;
  readonly size: number;
  readonly usedAt: number;
}

/**
 * A directory of files that several processes may share. Its size has a limit: the least recently used files are
 * deleted first, by their time of change, which is set at each use. Files of other names are left alone.
 *
 * Requests never fail because of it. What goes wrong is one line in the log, and the prefix is computed.
 */
export class PrefixDirectory {
  /** Bytes in the directory; undefined until it is listed. */
  #bytes: number | undefined;
  #writtenSinceListing = 0;
  #pausedUntil = 0;
  readonly #said = new Set<string>();

  private constructor(
    private readonly path: string,
    readonly maxBytes: number,
    private readonly warn: (message: string) => void,
    private readonly now: () => number,
  ) {}

  /**
   * Opens a directory, and creates it if it is not there. Only its owner can read it, because keys and values tell what
   * the prompts were.
   *
   * @param now milliseconds since 1970
   * @throws TritonError INVALID_ARG if it is neither there nor can be created
   */
  static async open(
    path: string,
    maxBytes: number = DEFAULT_PREFIX_BYTES,
    warn: (message: string) => void,
    now: () => number = Date.now,
  ): Promise<PrefixDirectory> {
    try {
      await mkdir(path, { recursive: true, mode: 0o700 });
    } catch (error) {
      const text = `cannot keep prefixes in ${path}: expected a directory, or a place for one, got ${(error as Error).message}`;
      throw errorFor("INVALID_OPTION", text, { cause: error });
    }
    return new PrefixDirectory(path, maxBytes, warn, now);
  }

  pathOf(name: string): string {
    return join(this.path, name);
  }

  /** Names of its files with an ending. */
  async names(ending: string): Promise<readonly string[]> {
    const all = await readdir(this.path).catch((error: NodeJS.ErrnoException) => {
      this.#complain("read", error);
      return [];
    });
    return all.filter((name) => name.endsWith(ending) && OWN_FILE.test(name));
  }

  async has(name: string): Promise<boolean> {
    const found = await stat(this.pathOf(name)).catch(() => undefined);
    return found?.isFile() === true;
  }

  /** The bytes of a file; undefined if it is not there or cannot be read. */
  async read(name: string): Promise<Buffer | undefined> {
    return readFile(this.pathOf(name)).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== "ENOENT") this.#complain("read", error);
      return undefined;
    });
  }

  /** Marks files as used now, the first one as used last, so that later parts of a chain are deleted before it. */
  async touch(names: readonly string[]): Promise<void> {
    const now = this.now();
    for (const [i, name] of names.entries()) {
      const at = new Date(now + names.length - i);
      await utimes(this.pathOf(name), at, at).catch(() => {});
    }
  }

  /** True while files may be written, which fails for a while after a failure. */
  get isWritable(): boolean {
    return this.now() >= this.#pausedUntil;
  }

  /**
   * Writes a file, after the deletion of others where the limit demands it. Readers see all of it or nothing.
   *
   * @param size bytes that it will have, as far as they are known
   * @param write writes the content to a path
   * @returns false if it was not written
   */
  async write(name: string, size: number, write: (path: string) => Promise<unknown>): Promise<boolean> {
    if (!this.isWritable || size > this.maxBytes) return false;
    const unfinished = `${this.pathOf(name)}.${randomUUID()}.tmp`;
    try {
      await this.#makeRoom(size);
      await write(unfinished);
      // llama.cpp writes by the umask, into a directory that may have been there before.
      await chmod(unfinished, 0o600);
      const at = new Date(this.now());
      await utimes(unfinished, at, at);
      const { size: written } = await stat(unfinished);
      await rename(unfinished, this.pathOf(name));
      this.#bytes = (this.#bytes ?? 0) + written;
      this.#writtenSinceListing += written;
      if (this.#bytes > this.maxBytes) await this.#makeRoom(0);
      return true;
    } catch (error) {
      this.#pausedUntil = this.now() + PAUSE_MS;
      this.#complain("write", error as NodeJS.ErrnoException);
      await unlink(unfinished).catch(() => {});
      return false;
    }
  }

  /** Says once that files are broken. Prefixes in them are computed and written again. */
  reportBroken(name: string, got: string): void {
    this.#say("broken", `ignored ${this.pathOf(name)}: expected a file of this model's prefixes, got ${got}`);
  }

  async #makeRoom(size: number): Promise<void> {
    const isDue = this.#writtenSinceListing > this.maxBytes * SHARE_BETWEEN_LISTINGS;
    if (this.#bytes !== undefined && this.#bytes + size <= this.maxBytes && !isDue) return;
    const files = await this.#list();
    let bytes = files.reduce((sum, file) => sum + file.size, 0);
    for (const file of files.sort((a, b) => a.usedAt - b.usedAt)) {
      if (bytes + size <= this.maxBytes) break;
      await unlink(file.path).catch(ignoreMissing);
      bytes -= file.size;
    }
    this.#bytes = bytes;
    this.#writtenSinceListing = 0;
  }

  /** Lists the files of prefixes, and deletes those that were never finished. */
  async #list(): Promise<ListedFile[]> {
    const files: ListedFile[] = [];
    let others = 0;
    for (const name of await readdir(this.path)) {
      const isOwn = OWN_FILE.test(name);
      const isUnfinished = UNFINISHED_FILE.test(name);
      if (!isOwn && !isUnfinished) others++;
      if (!isOwn && !isUnfinished) continue;
      const path = this.pathOf(name);
      const found = await stat(path).catch(() => undefined);
      // Another process may have deleted it.
      if (found === undefined) continue;
      if (isOwn) files.push({ path, size: found.size, usedAt: found.mtimeMs });
      else if (this.now() - found.mtimeMs > ABANDONED_MS) await unlink(path).catch(ignoreMissing);
    }
    if (others > 0) {
      const count = others === 1 ? "a file" : `${others} files`;
      this.#say("others", `the directory of prefixes ${this.path} has ${count} of other names, left alone`);
    }
    return files;
  }

  #complain(what: "read" | "write", error: NodeJS.ErrnoException): void {
    const effect = what === "read" ? "its prefix is computed" : "prefixes are not kept for a minute";
    this.#say(`${what} ${error.code}`, `cannot ${what} a file of prefixes: ${error.message}; ${effect}`);
  }

  /** Says a message of a kind once. */
  #say(kind: string, message: string): void {
    if (this.#said.has(kind)) return;
    this.#said.add(kind);
    this.warn(message);
  }
}

function ignoreMissing(error: NodeJS.ErrnoException): void {
  if (error.code !== "ENOENT") throw error;
}
