import { execFileSync } from "node:child_process";
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { root, run } from "../../scripts/run.mjs";

/** Packages as a user installs them: packed, unpacked elsewhere, with their dependencies beside them. */
export class Published {
  #folder = mkdtempSync(join(tmpdir(), "tritonjs-published-"));

  /** @param names of packages, each after its dependencies */
  constructor(names) {
    for (const name of names) this.#publish(name);
  }

  /** Path of an entry that a package exports: `entry("core", "./tensor")`. */
  entry(name, key = ".") {
    const folder = this.#folderOf(name);
    return join(folder, manifestOf(folder).exports[key].default);
  }

  /** Path of the program that a package installs as a command. */
  command(name) {
    const folder = this.#folderOf(name);
    return join(folder, Object.values(manifestOf(folder).bin)[0]);
  }

  remove() {
    rmSync(this.#folder, { recursive: true, force: true });
  }

  #folderOf(name) {
    return join(this.#folder, "node_modules", "@tritonjs", name);
  }

  #publish(name) {
    const source = join(root, "packages", name);
    const [tarballs, target] = [join(this.#folder, name), this.#folderOf(name)];
    mkdirSync(tarballs);
    mkdirSync(target, { recursive: true });
    const pack = ["pack", "--pack-destination", tarballs];
    run("npm", pack, { cwd: source, stdio: "ignore", shell: process.platform === "win32" });
    const [tarball] = readdirSync(tarballs);
    execFileSync("tar", ["-xzf", join(tarballs, tarball), "-C", target, "--strip-components=1"]);
    const { dependencies = {}, peerDependencies = {} } = manifestOf(target);
    for (const dependency of Object.keys({ ...dependencies, ...peerDependencies }))
      this.#link(source, dependency);
  }

  #link(source, dependency) {
    if (dependency.startsWith("@tritonjs/")) return;
    const target = join(this.#folder, "node_modules", dependency);
    mkdirSync(dirname(target), { recursive: true });
    try {
      symlinkSync(realpathSync(join(source, "node_modules", dependency)), target, "junction");
    } catch (error) {
      // Either an optional dependency that the workspace does not have, or one that two packages share.
      if (error.code !== "ENOENT" && error.code !== "EEXIST") throw error;
    }
  }
}

const manifestOf = (folder) => JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
