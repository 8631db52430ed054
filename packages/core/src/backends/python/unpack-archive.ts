import { type ChildProcess, spawn } from "node:child_process";
import { createReadStream } from "node:fs";
import { open } from "node:fs/promises";
import type { Readable, Writable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { createGunzip } from "node:zlib";

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
  const tar = spawn("tar", ["-x", "-o", "-f", "-", "-C", directory], {
    stdio: ["pipe", "ignore", "pipe"],
    env,
  });
  let late = false;
  const limit = setTimeout(() => {
    late = true;
    tar.kill("SIGKILL");
  }, withinMs);
  try {
    const [failure, unread] = await Promise.all([
      endOf(tar),
      pipeline([
        createReadStream(archive, { highWaterMark: 1 << 20 }),
        ...gunzip,
        tar.stdin as Writable,
      ]).then(
        () => undefined,
        (error: NodeJS.ErrnoException) => (NOT_READ_ON.has(error.code ?? "") ? undefined : error.message),
      ),
    ]);
    if (late) throw new Error(`unpacking took more than ${withinMs / 1000} s`);
    const why = unread ?? failure;
    if (why !== undefined) throw new Error(why);
  } finally {
    clearTimeout(limit);
  }
}

/** The reason why `tar` failed; undefined when it succeeded. */
function endOf(tar: ChildProcess): Promise<string | undefined> {
  let words = "";
  const stderr = tar.stderr as Readable;
  stderr.setEncoding("utf8").on("data", (text: string) => {
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
