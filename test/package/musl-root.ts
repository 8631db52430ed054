import { spawnSync } from "node:child_process";
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fromNpm, RUNTIMES } from "../../scripts/node-lines.mjs";

const LOADER = "lib/ld-musl-x86_64.so.1";
const BUN = "@oven/bun-linux-x64-musl";

/**
 * A folder with musl as its only C library and Bun's build for musl, for programs to run in with `chroot`. Debian's
 * package `musl` has the library; Debian's C++ library runs on it with a few names of glibc.
 */
export class MuslRoot {
  private constructor(readonly folder: string) {}

  /** A root without an application; the reason if it cannot be made here. */
  static create(): MuslRoot | string {
    if (process.platform !== "linux" || process.arch !== "x64") return "it is made on Linux x64";
    if (process.getuid?.() !== 0) return "chroot needs root";
    const folder = mkdtempSync(join(tmpdir(), "tritonjs-musl-"));
    try {
      fill(folder);
      return new MuslRoot(folder);
    } catch (error) {
      rmSync(folder, { recursive: true });
      return (error as Error).message;
    }
  }

  /** Copies an application to `/app`. */
  copy(application: string): void {
    cpSync(application, join(this.folder, "app"), { recursive: true });
  }

  remove(): void {
    rmSync(this.folder, { recursive: true });
  }
}

function fill(folder: string): void {
  for (const name of ["lib", "bin", "etc", "tmp", "musl"]) mkdirSync(join(folder, name));
  writeFileSync(join(folder, "etc/hosts"), "127.0.0.1 localhost\n");
  run("apt-get", ["download", "-q", "musl"], join(folder, "musl"));
  run("sh", ["-c", "dpkg -x musl_*.deb ."], join(folder, "musl"));
  // On systems where /lib is a link, the package has the loader there, as a link to the library beside it.
  cpSync(realpathSync(join(folder, "musl/lib/x86_64-linux-musl/libc.so")), join(folder, LOADER));
  symlinkSync("ld-musl-x86_64.so.1", join(folder, "lib/libc.musl-x86_64.so.1"));
  rmSync(join(folder, "musl"), { recursive: true });
  for (const name of ["libstdc++.so.6", "libgcc_s.so.1"]) {
    const found = ["/usr/lib/x86_64-linux-gnu", "/lib/x86_64-linux-gnu"].map((place) => join(place, name));
    cpSync(realpathSync(found.find(existsSync) ?? found[0]!), join(folder, "lib", name));
  }
  const names = join(folder, "lib/ld-linux-x86-64.so.2");
  const source = join(import.meta.dirname, "musl", "glibc-names.c");
  run("gcc", [
    "-shared",
    "-fPIC",
    "-nostdlib",
    "-w",
    `-Wl,-soname,ld-linux-x86-64.so.2`,
    "-o",
    names,
    source,
  ]);
  const version = RUNTIMES.bun;
  const bun = fromNpm(`bun-musl-${version}`, `--force ${BUN}@${version}`, join(BUN, "bin/bun"));
  cpSync(bun, join(folder, "bin/bun"));
}

function run(command: string, args: readonly string[], cwd?: string): void {
  const { status, stderr, error } = spawnSync(command, args, { cwd, encoding: "utf8", timeout: 60_000 });
  if (status === 0) return;
  throw new Error(`${command} failed: ${error?.message ?? stderr.trim().split("\n").at(-1)}`);
}
