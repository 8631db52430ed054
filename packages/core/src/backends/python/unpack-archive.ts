import { type ChildProcess, spawn } from "node:child_process";
import { createReadStream } from "node:fs";
import { open } from "node:fs/promises";
import type { Readable, Transform, Writable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { createGunzip } from "node:zlib";
import { startProcess } from "../../files/start-process.js";

/** Characters kept of the error output of `tar`. */
const MOST_WORDS = 2000;

/** `tar` has read enough, or has ended. Its exit status tells which. */
const NOT_READ_ON = new Set(["EPIPE", "ECONNRESET", "ERR_STREAM_PREMATURE_CLOSE"]);

/**
 * Unpacks a tar archive, gzipped or plain, into a directory with the program `tar`, which writes only inside the
 * directory. This process reads the archive and sends it through a pipe, so that `tar` ends with this process.
 *
 * @throws Error with the reason, in the words of `tar` or of zlib
 */
export async function unpackArchive(archive: string, directory: string, withinMs: number): Promise<void> {
  const gunzip = (await isGzipped(archive)) ? [createGunzip()] : [];
  const env = { ...process.env, LC_ALL: "C", TAR_OPTIONS: undefined };
  const tar = startProcess(() =>
    spawn("tar", ["-x", "-o", "-f", "-", "-C", directory], { stdio: ["pipe", "ignore", "pipe"], env }),
  );
  let late = false;
  const limit = setTimeout(() => {
    late = true;
    tar.kill("SIGKILL");
  }, withinMs);
  try {
    // Without a free descriptor, Node makes no streams. Its types say otherwise.
    const input = tar.stdin as Writable | undefined;
    const [failure, unread] = await Promise.all([
      endOf(tar),
      input && feed([createReadStream(archive, { highWaterMark: 1 << 20 }), ...gunzip, input]),
    ]);
    if (late) throw new Error(`unpacking took more than ${withinMs / 1000} s`);
    const why = unread ?? failure;
    if (why !== undefined) throw new Error(why);
  } finally {
    clearTimeout(limit);
  }
}

/** The reason why the archive could not be read; undefined when it could, or when `tar` stopped reading. */
async function feed(streams: readonly (Readable | Transform | Writable)[]): Promise<string | undefined> {
  try {
    await pipeline(streams as readonly NodeJS.ReadWriteStream[]);
    return undefined;
  } catch (error) {
    const { code = "", message } = error as NodeJS.ErrnoException;
    return NOT_READ_ON.has(code) ? undefined : message;
  }
}

/** The reason why `tar` failed; undefined when it succeeded. */
function endOf(tar: ChildProcess): Promise<string | undefined> {
  let words = "";
  const stderr = tar.stderr as Readable | undefined;
  stderr?.setEncoding("utf8").on("data", (text: string) => {
    if (words.length < MOST_WORDS) words += text.slice(0, MOST_WORDS - words.length);
  });
  return new Promise((resolve) => {
    tar.on("error", (error) => resolve(`cannot start the program 'tar' (${error.message})`));
    tar.on("close", (code, signal) => {
      if (code === 0) return resolve(undefined);
      const how = signal === null ? `exited with code ${code}` : `was ended by ${signal}`;
      resolve(words.trim().replaceAll("\n", "; ") || `tar ${how}`);
    });
  });
}

async function isGzipped(path: string): Promise<boolean> {
  await using file = await open(path);
  const { buffer } = await file.read(Buffer.alloc(2), 0, 2, 0);
  return buffer[0] === 0x1f && buffer[1] === 0x8b;
}
