import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join, relative, sep } from "node:path";
import { type Ended, Program } from "../support/program.js";
import { repositoryRoot } from "../support/repository.js";
import { KEPT } from "../support/temporary-folder.js";

/** The published packages. */
export const PACKAGES = [
  "protocol",
  "core",
  "server",
  "scheduling",
  "testing",
  "repository",
  "operations",
  "perf",
  "backends",
  "onnxruntime-wasm",
  "http",
  "grpc",
  "client",
  "llm",
  "cli",
] as const;

export type PackageName = (typeof PACKAGES)[number];

/** Package managers that publish a package: with `npm publish` or `pnpm publish` in its folder. */
export type Packer = "npm" | "pnpm";

/** A folder outside the repository with tarballs of the packages, and projects that installed them. */
export class PackedPackages {
  readonly #folder = mkdtempSync(join(tmpdir(), "tritonjs-package-"));
  readonly #tarballs = new Map<PackageName, string>();

  /**
   * Packs every package as it is published, except for the build: the tests run on a built tree. All files of tests in a
   * run share the tarballs of the first one that is done.
   */
  async pack(packer: Packer = "npm"): Promise<void> {
    const packed = await this.#shared(`packed-by-${packer}`, (draft) => this.#packInto(draft, packer));
    const files = readdirSync(packed);
    for (const name of PACKAGES) {
      const tarball = files.find((file) => new RegExp(`^tritonjs-${name}-\\d`).test(file))!;
      this.#tarballs.set(name, join(packed, tarball));
    }
  }

  /** Path of a folder that all files of tests in a run share. The first one that needs it fills it. */
  async #shared(name: string, fill: (draft: string) => Promise<void>): Promise<string> {
    const folder = join(tmpdir(), `${KEPT}${name}`);
    if (existsSync(folder)) return folder;
    const draft = join(this.#folder, name);
    mkdirSync(draft);
    await fill(draft);
    try {
      renameSync(draft, folder);
    } catch (error) {
      // Another file of tests was faster.
      if (!existsSync(folder)) throw error;
    }
    return folder;
  }

  async #packInto(folder: string, packer: Packer): Promise<void> {
    const folders = PACKAGES.map((name) => `./packages/${name}`);
    const target = ["--pack-destination", folder];
    const program =
      packer === "npm"
        ? npmProgram("npm", ["pack", ...folders, "--ignore-scripts", ...target], repositoryRoot)
        : npmProgram(
            "npx",
            [
              ...["--yes", pnpmVersion(), "--config.ignore-scripts=true"],
              ...[...folders.flatMap((folder) => ["--filter", folder]), "pack", ...target],
            ],
            repositoryRoot,
          );
    await succeed(program);
  }

  /** Path of a packed package. */
  tarball(name: PackageName): string {
    return this.#tarballs.get(name)!;
  }

  /** Contents of a packed package. */
  async unpack(name: PackageName): Promise<Unpacked> {
    const target = join(this.#folder, `${name}-unpacked`);
    mkdirSync(target);
    await succeed(new Program("tar", ["-xzf", this.tarball(name), "-C", target], { cwd: target }));
    return new Unpacked(join(target, "package"));
  }

  /**
   * An empty project that installs the tarballs of some packages, without running any install script. Projects with the same
   * packages are copies of one installation.
   */
  async install(project: string, names: readonly PackageName[]): Promise<Project> {
    const sorted = [...names].sort();
    const installed = await this.#shared(`installed-${sorted.join("-")}`, async (draft) => {
      writeFileSync(
        join(draft, "package.json"),
        JSON.stringify({ name: "project", private: true, type: "module" }),
      );
      const tarballs = sorted.map((name) => this.tarball(name));
      const flags = ["--ignore-scripts", "--no-audit", "--no-fund", "--prefer-offline"];
      await succeed(npmProgram("npm", ["install", ...flags, ...tarballs], draft));
    });
    const folder = join(this.#folder, project);
    cpSync(installed, folder, { recursive: true, verbatimSymlinks: true });
    return new Project(folder);
  }

  /**
   * A project whose manifest names the tarballs of some packages, and nothing installed. The overrides are for packages
   * that ask for each other: npm, yarn and bun each read another field.
   */
  project(
    project: string,
    names: readonly PackageName[],
    dependencies: Record<string, string> = {},
  ): Project {
    const folder = join(this.#folder, project);
    mkdirSync(folder);
    const own = Object.fromEntries(names.map((name) => [`@tritonjs/${name}`, `file:${this.tarball(name)}`]));
    const manifest = { name: project, private: true, type: "module" };
    writeFileSync(
      join(folder, "package.json"),
      JSON.stringify({
        ...manifest,
        dependencies: { ...own, ...dependencies },
        resolutions: own,
        overrides: own,
      }),
    );
    const lines = Object.entries(own).map(([name, file]) => `  "${name}": "${file}"\n`);
    writeFileSync(join(folder, "pnpm-workspace.yaml"), `overrides:\n${lines.join("")}`);
    return new Project(folder);
  }

  remove(): void {
    rmSync(this.#folder, { recursive: true, force: true });
  }
}

/** A folder of files: an unpacked package, or what a project installed. */
export class Unpacked {
  /** Paths in the folder with `/` between their parts, sorted, and their sizes in bytes. */
  readonly sizes: ReadonlyMap<string, number>;

  constructor(readonly folder: string) {
    const sizes = readdirSync(folder, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => join(entry.parentPath, entry.name))
      .map((file) => [relative(folder, file).replaceAll(sep, "/"), statSync(file).size] as const);
    this.sizes = new Map(sizes.sort(([a], [b]) => (a < b ? -1 : 1)));
  }

  get files(): string[] {
    return [...this.sizes.keys()];
  }

  /** Size of all files together, in bytes. */
  get size(): number {
    return [...this.sizes.values()].reduce((sum, size) => sum + size, 0);
  }

  get manifest(): Manifest {
    return JSON.parse(readFileSync(join(this.folder, "package.json"), "utf8"));
  }
}

/** A project with packages installed. */
export class Project {
  constructor(readonly folder: string) {}

  write(file: string, text: string): string {
    const path = join(this.folder, file);
    writeFileSync(path, text);
    return path;
  }

  /** Runs a program in the project. */
  run(file: string, text: string): Promise<Ended> {
    return Program.node(this.write(file, text), [], this.folder).ended;
  }

  /** Runs a command of an installed package. */
  command(name: string, ...args: readonly string[]): Promise<Ended> {
    return npmProgram(join(this.folder, "node_modules", ".bin", name), args, this.folder).ended;
  }

  /** Runs the repository's TypeScript in the project. */
  compile(tsconfig: object): Promise<Ended> {
    const config = this.write("tsconfig.json", JSON.stringify(tsconfig));
    const tsc = join(repositoryRoot, "node_modules", "typescript", "bin", "tsc");
    return Program.node(tsc, ["-p", config], this.folder).ended;
  }

  /** Path of a file in an installed package. */
  path(name: PackageName, ...rest: readonly string[]): string {
    return join(this.folder, "node_modules", "@tritonjs", name, ...rest);
  }

  manifest(name: PackageName): Manifest {
    return JSON.parse(readFileSync(this.path(name, "package.json"), "utf8"));
  }

  /** All files that npm installed. */
  installed(): Unpacked {
    return new Unpacked(join(this.folder, "node_modules"));
  }

  /** Folders of the packages that npm installed. */
  installedPackages(): string[] {
    const { packages } = JSON.parse(
      readFileSync(join(this.folder, "node_modules", ".package-lock.json"), "utf8"),
    ) as { packages: Record<string, unknown> };
    return Object.keys(packages);
  }
}

/** The fields of a package.json that the tests read. */
export interface Manifest {
  readonly name: string;
  readonly version: string;
  readonly scripts?: Readonly<Record<string, string>>;
  readonly bin?: Readonly<Record<string, string>>;
  readonly exports: Readonly<Record<string, string | { readonly types: string; readonly default: string }>>;
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly peerDependencies?: Readonly<Record<string, string>>;
}

/** npm's programs are scripts on Windows, which only a shell can start. */
function npmProgram(program: string, args: readonly string[], cwd: string): Program {
  if (process.platform !== "win32") return new Program(program, args, { cwd });
  return new Program(
    program,
    args.map((arg) => `"${arg}"`),
    { cwd, shell: true },
  );
}

export async function succeed(program: Program): Promise<void> {
  const { code, stdout, stderr } = await program.ended;
  if (code !== 0) throw new Error(`ended with ${code}:\n${stdout}${stderr}`);
}

/** The package manager as scripts/install.mjs names it. */
export function pnpmVersion(): string {
  const script = readFileSync(join(repositoryRoot, "scripts", "install.mjs"), "utf8");
  return /"(pnpm@[\d.]+)"/.exec(script)![1]!;
}
