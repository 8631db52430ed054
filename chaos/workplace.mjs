import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** Bytes of the disk that events fill. The traces of an hour take some forty megabytes. */
const DISK = "96m";

const FAKETIME = ["/usr/lib/x86_64-linux-gnu/faketime", "/usr/lib/aarch64-linux-gnu/faketime"]
  .map((folder) => join(folder, "libfaketime.so.1"))
  .find((path) => existsSync(path));

/** The directories of a run: a small disk of its own where the user may mount one. */
export class Workplace {
  folder = mkdtempSync(join(tmpdir(), "tritonjs-chaos-"));
  /** The served repository and the traces. */
  disk = join(this.folder, "disk");
  /** Temporary files of the servers. */
  temporary = join(this.folder, "tmp");
  isTmpfs;

  constructor() {
    mkdirSync(this.disk);
    mkdirSync(this.temporary);
    const mount = ["-t", "tmpfs", "-o", `size=${DISK}`, "tritonjs-chaos", this.disk];
    this.isTmpfs = spawnSync("mount", mount).status === 0;
  }

  /** Environment of a server whose wall clock follows `clockFile`; undefined without libfaketime. */
  clockEnvironment(clockFile) {
    if (FAKETIME === undefined) return undefined;
    return {
      LD_PRELOAD: FAKETIME,
      FAKETIME_TIMESTAMP_FILE: clockFile,
      FAKETIME_DONT_FAKE_MONOTONIC: "1",
      FAKETIME_CACHE_DURATION: "1",
    };
  }

  remove() {
    if (this.isTmpfs) spawnSync("umount", ["-l", this.disk]);
    rmSync(this.folder, { recursive: true, force: true });
  }
}
