import { spawn } from "node:child_process";
import { once } from "node:events";
import { createReadStream } from "node:fs";

/*
 * The frames of a video, one after the other. A `.y4m` file is read here. Everything else (files, cameras, addresses of
 * streams) is decoded by the program ffmpeg, which writes Y4M too. Nothing is read ahead of the consumer but one chunk:
 * a consumer that is slower than the video fills the pipe, and ffmpeg waits.
 */

/**
 * @param source path or address of the video
 * @param ffmpeg the program that decodes it
 * @returns iterator of `{ index, width, height, luma }`; leaving it ends the program
 */
export async function* framesOf(source, { ffmpeg = process.env.FFMPEG ?? "ffmpeg" } = {}) {
  if (source.endsWith(".y4m")) {
    yield* readY4m(createReadStream(source), source);
    return;
  }
  const child = spawn(
    ffmpeg,
    ["-v", "error", "-nostdin", "-i", source, "-an", "-pix_fmt", "yuv420p", "-f", "yuv4mpegpipe", "-"],
    { stdio: ["ignore", "pipe", "pipe"] },
  );
  let complaint = "";
  child.stderr.setEncoding("utf8").on("data", (text) => {
    complaint = (complaint + text).slice(-2000);
  });
  const ended = once(child, "close").catch((error) => {
    const isMissing = error.code === "ENOENT";
    const why = isMissing
      ? `the program '${ffmpeg}' is not installed (apt-get install ffmpeg); a .y4m file can be read without it`
      : error.message;
    throw new Error(`cannot decode '${source}': ${why}`, { cause: error });
  });
  // It is awaited after the last frame.
  ended.catch(() => {});
  let isComplete = false;
  try {
    yield* readY4m(child.stdout, source, async () => {
      const [code] = await ended;
      if (code !== 0)
        throw new Error(`cannot decode '${source}': ffmpeg exited with code ${code}: ${complaint.trim()}`);
      isComplete = true;
    });
  } finally {
    if (!isComplete) child.kill("SIGKILL");
  }
}

/** Reads Y4M. @param atEnd called at the end of the stream, where it may report what ended the stream */
async function* readY4m(stream, name, atEnd = async () => {}) {
  const bytes = new ByteReader(stream);
  const header = await bytes.line();
  if (header === undefined) await atEnd();
  const { width, height, frameBytes } = sizesOf(header ?? "", name);
  for (let index = 0; ; index++) {
    const mark = await bytes.line();
    if (mark === undefined) break;
    if (!mark.startsWith("FRAME"))
      throw new Error(`'${name}': frame ${index}: expected FRAME, got '${mark.slice(0, 20)}'`);
    const frame = await bytes.take(frameBytes);
    if (frame === undefined)
      throw new Error(`'${name}': frame ${index}: expected ${frameBytes} bytes, got the end of the video`);
    yield { index, width, height, luma: frame.subarray(0, width * height) };
  }
  await atEnd();
}

/** Bytes of the colours of a frame for each byte of its luma, by the name of the format. */
const COLOURS = { 420: 0.5, 422: 1, 444: 2, mono: 0 };

function sizesOf(header, name) {
  const field = (letter) => new RegExp(` ${letter}(\\S+)`).exec(header)?.[1];
  const [width, height] = [Number(field("W")), Number(field("H"))];
  const format = field("C") ?? "420";
  const colours = COLOURS[/^(mono|\d{3})(?!p1)/.exec(format)?.[1]];
  if (!header.startsWith("YUV4MPEG2 ") || !(width > 0) || !(height > 0) || colours === undefined) {
    throw new Error(`'${name}': expected a Y4M header with 8-bit frames, got '${header.slice(0, 80)}'`);
  }
  const chroma =
    colours === 0.5 ? 2 * Math.ceil(width / 2) * Math.ceil(height / 2) : width * height * colours;
  return { width, height, frameBytes: width * height + chroma };
}

/** Longest line of a header. */
const LINE_BYTES = 1024;

/** Lines and blocks of a stream, of which it holds one chunk. */
class ByteReader {
  #chunks;
  #rest = Buffer.alloc(0);

  constructor(stream) {
    this.#chunks = stream[Symbol.asyncIterator]();
  }

  /** The next line without its end; undefined at the end of the stream. */
  async line() {
    let line = Buffer.alloc(0);
    while (line.length < LINE_BYTES) {
      if (this.#rest.length === 0 && !(await this.#next()))
        return line.length === 0 ? undefined : line.toString();
      const end = this.#rest.indexOf(10);
      if (end >= 0) {
        line = Buffer.concat([line, this.#rest.subarray(0, end)]);
        this.#rest = this.#rest.subarray(end + 1);
        return line.toString("latin1");
      }
      line = Buffer.concat([line, this.#rest]);
      this.#rest = Buffer.alloc(0);
    }
    return line.toString("latin1");
  }

  /** The next `count` bytes; undefined if the stream ends before. */
  async take(count) {
    const block = Buffer.allocUnsafe(count);
    for (let filled = 0; filled < count; ) {
      if (this.#rest.length === 0 && !(await this.#next())) return undefined;
      const copied = this.#rest.copy(block, filled);
      filled += copied;
      this.#rest = this.#rest.subarray(copied);
    }
    return block;
  }

  async #next() {
    const { value, done } = await this.#chunks.next();
    if (!done) this.#rest = value;
    return !done;
  }
}
