import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, onTestFinished, vi } from "vitest";
import { LogFile } from "../../../src/observe/create-log.js";

/** Bytes that the disk takes before it is full; undefined for a disk with room. */
let room: number | undefined;

vi.mock("node:fs", async (original) => {
  const fs = await original<typeof import("node:fs")>();
  const writeSync = (descriptor: number, bytes: Buffer, offset: number) => {
    const free = room ?? Number.POSITIVE_INFINITY;
    if (free === 0)
      throw Object.assign(new Error("ENOSPC: no space left on device, write"), { code: "ENOSPC" });
    const count = fs.writeSync(descriptor, bytes, offset, Math.min(free, bytes.byteLength - offset));
    if (room !== undefined) room -= count;
    return count;
  };
  return { ...fs, writeSync };
});

function openFile() {
  const folder = mkdtempSync(join(tmpdir(), "tritonjs-log-"));
  const path = join(folder, "log");
  const file = new LogFile(path);
  const warn = vi.spyOn(process, "emitWarning").mockImplementation(() => {});
  onTestFinished(() => {
    room = undefined;
    file.close();
    rmSync(folder, { recursive: true });
    vi.restoreAllMocks();
  });
  return { file, path, warn, content: () => readFileSync(path, "utf8") };
}

it("loses lines while the disk is full, and says how many once it has room", () => {
  const { file, path, warn, content } = openFile();
  file.write("one\n");
  room = 0;
  file.write("two\n");
  file.write("three\n");
  expect(warn.mock.calls.map(([text]) => text)).toEqual([
    `cannot write to the log file '${path}': ENOSPC: no space left on device, write; lines are lost until it can be written`,
  ]);
  room = undefined;
  file.write("four\n");
  expect(content()).toBe("one\n2 lines of the log were lost\nfour\n");
});

it("begins a new line after one that the disk took in part", () => {
  const { file, content } = openFile();
  room = 2;
  file.write("one\n");
  room = undefined;
  file.write("two\n");
  expect(content()).toBe("on\n1 lines of the log were lost\ntwo\n");
});

it("writes nothing after it is closed", () => {
  const { file, content } = openFile();
  file.close();
  file.write("one\n");
  expect(content()).toBe("");
});
