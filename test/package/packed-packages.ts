import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Ended, Program } from "../support/program.js";
import { repositoryRoot } from "../support/repository.js";

/** What is published. */
export const PACKAGES = ["core", "http", "grpc", "cli"] as const;

export type PackageName = (typeof PACKAGES)[number];

/** A folder outside the repository with tarballs of the packages, and projects that installed them. */
export class PackedPackages {
  readonly #folder = mkdtempSync(join(tmpdir(), "tritonjs-package-"));
  readonly #tarballs = new Map<PackageName, string>();

  /** Packs every package as `pnpm publish` would: with pnpm, which replaces `workspace:` ranges. */
  async pack(): Promise<void> {
    for (const name of PACKAGES) {
      const target = join(this.#folder, name);
      mkdirSync(target);
      const cwd = join(repositoryRoot, "packages", name);
      await succeed(npmProgram("npx", ["--yes", pnpmVersion(), "pack", "--pack-destination", target], cwd));
      this.#tarballs.set(name, join(target, readdirSync(target)[0]!));
    }
  }

  /** An empty project that installs the tarballs of some packages, without running any install script. */
  async install(project: string, names: readonly PackageName[]): Promise<Project> {
    const folder = join(this.#folder, project);
    mkdirSync(folder);
    writeFileSync(
      join(folder, "package.json"),
      JSON.stringify({ name: project, private: true, type: "module" }),
    );
    const tarballs = names.map((name) => this.#tarballs.get(name)!);
    const flags = ["--ignore-scripts", "--no-audit", "--no-fund", "--prefer-offline"];
    await succeed(npmProgram("npm", ["install", ...flags, ...tarballs], folder));
    return new Project(folder);
  }

  remove(): void {
    rmSync(this.#folder, { recursive: true, force: true });
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

  /** Runs a command that an installed package has, as `npx` does. */
  command(name: string, ...args: readonly string[]): Promise<Ended> {
    return npmProgram("npx", ["--no-install", name, ...args], this.folder).ended;
  }

  /** Runs the repository's TypeScript in the project. */
  compile(tsconfig: object): Promise<Ended> {
    const config = this.write("tsconfig.json", JSON.stringify(tsconfig));
    const tsc = join(repositoryRoot, "node_modules", "typescript", "bin", "tsc");
    return Program.node(tsc, ["-p", config], this.folder).ended;
  }

  /** Path of what an installed package holds. */
  path(name: PackageName, ...rest: readonly string[]): string {
    return join(this.folder, "node_modules", "@tritonjs", name, ...rest);
  }

  manifest(name: PackageName): Manifest {
    return JSON.parse(readFileSync(this.path(name, "package.json"), "utf8"));
  }
}

/** The parts of a package.json that are looked at. */
export interface Manifest {
  readonly name: string;
  readonly version: string;
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

async function succeed(program: Program): Promise<void> {
  const { code, stdout, stderr } = await program.ended;
  if (code !== 0) throw new Error(`ended with ${code}:\n${stdout}${stderr}`);
}

/** The package manager as scripts/install.mjs names it. */
function pnpmVersion(): string {
  const script = readFileSync(join(repositoryRoot, "scripts", "install.mjs"), "utf8");
  return /"(pnpm@[\d.]+)"/.exec(script)![1]!;
}
