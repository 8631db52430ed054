import { execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { PNPM } from "../../scripts/install.mjs";
import { root } from "../../scripts/run.mjs";

/**
 * Checks a revision out in a temporary directory and builds packages of it. A directory with a built tree is used as it
 * is.
 *
 * @param packages names of folders in `packages`
 * @returns the root of the tree, and a function that removes it
 */
export function checkOut(revision, packages) {
  if (existsSync(join(revision, "packages"))) return { tree: resolve(revision), remove() {} };
  const git = (...args) => execFileSync("git", args, { cwd: root, encoding: "utf8" }).trim();
  const commit = commitOf(revision, git);
  const folder = mkdtempSync(join(tmpdir(), "tritonjs-compare-"));
  const tree = join(folder, "tree");
  const remove = () => {
    git("worktree", "remove", "--force", tree);
    rmSync(folder, { recursive: true, force: true });
  };
  git("worktree", "add", "--quiet", "--detach", tree, commit);
  try {
    // Do not use `run`, which ends this process: the tree has to be removed.
    const options = { cwd: tree, stdio: ["ignore", "ignore", "inherit"] };
    console.error(`building ${commit.slice(0, 8)} in ${tree}`);
    execFileSync("npx", ["--yes", PNPM, "install", "--frozen-lockfile", "--prefer-offline"], {
      ...options,
      shell: process.platform === "win32",
    });
    const [tsc, bundle] = [join("node_modules", "typescript", "bin", "tsc"), join("scripts", "bundle.mjs")];
    for (const name of packages) {
      const folder = join("packages", name);
      execFileSync(process.execPath, [tsc, "-b", folder], options);
      // In older revisions the compiler writes the JavaScript too.
      const isComplete = existsSync(join(tree, folder, "dist", "index.js"));
      if (!isComplete) execFileSync(process.execPath, [bundle, name], options);
    }
  } catch (error) {
    remove();
    throw error;
  }
  return { tree, remove };
}

function commitOf(revision, git) {
  try {
    return git("rev-parse", "--verify", "--quiet", `${revision}^{commit}`);
  } catch (cause) {
    throw new Error(`'${revision}' is neither a revision that git knows nor the root of a tree`, { cause });
  }
}
