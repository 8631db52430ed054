import { type ChildProcess, spawn } from "node:child_process";
import { setPriority } from "node:os";
import { delimiter, dirname, isAbsolute } from "node:path";
import type { Duplex } from "node:stream";
import { fileURLToPath } from "node:url";
import { TritonError } from "@tritonjs/protocol";
import { type FrameBody, PythonFrameReader, pythonFrame } from "./frames.js";

const PROGRAM = fileURLToPath(new URL("../../../python/run_model.py", import.meta.url));

/** How long output may still arrive after the process has ended. A descendant that left its group may hold it open. */
const LAST_WORDS_MS = 1000;

/** Receives the events of a process. */
export interface PythonListener {
  message(header: { readonly type: string }, body: Uint8Array): void;
  /** A line that the model printed. */
  printed(line: string): void;
  /** The process and all its descendants have ended. This is the last event. */
  gone(why: string): void;
}

/**
 * A process that runs a Python model. It sends and receives frames over its descriptor 3. It leads a process group of
 * its own, which ends with it. A guardian in the group holds descriptor 4 and ends the group when this process is gone.
 */
export class PythonProcess {
  readonly #child: ChildProcess;
  /** Undefined if the process could not be started. */
  readonly #line: Duplex | undefined;
  readonly #listener: PythonListener;
  #gone = false;
  #fault: string | undefined;
  #patience: NodeJS.Timeout | undefined;

  /** @param program the program to run, and its environment variables */
  constructor(
    { python, env }: { readonly python: string; readonly env?: NodeJS.ProcessEnv | undefined },
    nice: number | undefined,
    listener: PythonListener,
  ) {
    this.#listener = listener;
    const variables = { ...process.env, ...env };
    const child = spawn(python, [PROGRAM], {
      detached: true,
      stdio: ["ignore", "pipe", "pipe", "pipe", "pipe"],
      env: isAbsolute(python)
        ? { ...variables, PATH: `${dirname(python)}${delimiter}${variables.PATH ?? ""}` }
        : variables,
    });
    this.#child = child;
    child.on("error", (error) => {
      if (child.pid === undefined) this.#end(`could not be started (${error.message})`);
    });
    // Without a free descriptor, Node makes no streams either. Its types say otherwise.
    const [, stdout, stderr, line, lifeline] = (child.stdio ?? []) as readonly (Duplex | undefined)[];
    this.#line = line;
    // A write to a process that has ended fails. The event `exit` reports the end.
    for (const stream of [stdout, stderr, line, lifeline]) stream?.on("error", () => {});
    if (child.pid === undefined) return;
    if (nice !== undefined) lowerPriority(child.pid, nice);
    for (const stream of [stdout!, stderr!]) {
      const lines = new OutputLines((text) => listener.printed(text));
      stream.on("data", (chunk: Buffer) => lines.push(chunk)).on("end", () => lines.end());
    }
    const reader = new PythonFrameReader((header, body) =>
      listener.message(header as { type: string }, body),
    );
    line!.on("data", (chunk: Buffer) => this.#read(reader, chunk));
    child.on("exit", (code, signal) => {
      const how = signal === null ? `exited with code ${code}` : `was ended by ${signal}`;
      this.#killGroup();
      lifeline!.destroy();
      const end = () => this.#end(this.#fault ?? how);
      child.once("close", end);
      this.#patience = setTimeout(() => {
        for (const stream of [stdout!, stderr!, line!]) stream.destroy();
        end();
      }, LAST_WORDS_MS);
    });
  }

  /** Number of the process, as text; empty when the process did not start. */
  get pid(): string {
    return String(this.#child.pid ?? "");
  }

  /** Sends a frame. Does nothing when the process has ended. */
  send(header: object, body?: FrameBody): void {
    if (this.#gone || !this.#line?.writable) return;
    this.#line.cork();
    for (const piece of pythonFrame(header, body)) this.#line.write(piece);
    this.#line.uncork();
  }

  /** Ends the process and all its descendants by force. */
  kill(): void {
    if (this.#gone) return;
    this.#killGroup();
  }

  #read(reader: PythonFrameReader, chunk: Buffer): void {
    if (this.#fault !== undefined) return;
    try {
      reader.push(chunk);
    } catch (error) {
      this.#fault = `wrote data that the library cannot read (${TritonError.from(error).message})`;
      this.kill();
    }
  }

  #killGroup(): void {
    if (this.#child.pid === undefined) return;
    try {
      process.kill(-this.#child.pid, "SIGKILL");
    } catch {
      // All of them have ended already.
    }
  }

  #end(why: string): void {
    if (this.#gone) return;
    this.#gone = true;
    clearTimeout(this.#patience);
    this.#listener.gone(why);
  }
}

function lowerPriority(pid: number, nice: number): void {
  try {
    setPriority(pid, nice);
  } catch (error) {
    process.emitWarning(`cannot give a child process the priority ${nice}: ${(error as Error).message}`);
  }
}

/** Longer lines are written in pieces. */
const MOST_BYTES = 8192;
const LINE_FEED = 10;

/** Splits the output of a process into lines. Holds at most one piece of one line. */
class OutputLines {
  #rest = Buffer.alloc(0);

  constructor(private readonly write: (line: string) => void) {}

  push(chunk: Buffer): void {
    let data = this.#rest.byteLength === 0 ? chunk : Buffer.concat([this.#rest, chunk]);
    for (;;) {
      const end = data.indexOf(LINE_FEED);
      const size = end < 0 ? data.byteLength : end;
      if (size > MOST_BYTES) {
        this.#line(data.subarray(0, MOST_BYTES));
        data = data.subarray(MOST_BYTES);
      } else if (end < 0) {
        break;
      } else {
        this.#line(data.subarray(0, end));
        data = data.subarray(end + 1);
      }
    }
    // A copy, so that the chunk is not kept for its last bytes.
    this.#rest = Buffer.from(data);
  }

  /** Writes the rest after the output has ended. */
  end(): void {
    if (this.#rest.byteLength > 0) this.#line(this.#rest);
    this.#rest = Buffer.alloc(0);
  }

  #line(bytes: Buffer): void {
    const line = bytes.toString("utf8");
    this.write(line.endsWith("\r") ? line.slice(0, -1) : line);
  }
}
