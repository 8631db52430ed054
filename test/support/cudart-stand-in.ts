import { execFileSync } from "node:child_process";
import { mkdirSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { requireKoffi } from "@tritonjs/core/internal";
import { RepositoryOnDisk } from "./repository-on-disk.js";

const source = fileURLToPath(new URL("cudart-stand-in.c", import.meta.url));

/** A C compiler of this machine; undefined if there is none, or on a system other than Linux. */
export const cCompiler: string | undefined =
  process.platform === "linux"
    ? ["cc", "gcc", "clang"].find((name) => {
        try {
          execFileSync(name, ["--version"], { stdio: "ignore" });
          return true;
        } catch {
          return false;
        }
      })
    : undefined;

/** Why tests of the stand-in are skipped, for their names. */
export const withoutCompiler = cCompiler === undefined ? " (skipped: there is no C compiler on Linux)" : "";

/**
 * Compiles the stand-in for CUDA's runtime library into a folder: `libcudart.so.12`, `libcuda.so.1` for the driver's
 * function, and `lib64/libcudart.so.12` for `CUDA_HOME`.
 *
 * @returns path of the library
 */
export function compileCudart(folder: string): string {
  const file = join(folder, "libcudart.so.12");
  execFileSync(cCompiler!, ["-shared", "-fPIC", "-o", file, source]);
  symlinkSync(file, join(folder, "libcuda.so.1"));
  mkdirSync(join(folder, "lib64"));
  symlinkSync(file, join(folder, "lib64", "libcudart.so.12"));
  return file;
}

/** Compiles the stand-in into a folder that is `CUDA_HOME` of this process until it is disposed. */
export async function openCudaHome() {
  const { CUDA_HOME } = process.env;
  const folder = await RepositoryOnDisk.create({});
  const library = compileCudart(folder.path);
  requireKoffi();
  process.env.CUDA_HOME = folder.path;
  return {
    library,
    async [Symbol.asyncDispose]() {
      if (CUDA_HOME === undefined) delete process.env.CUDA_HOME;
      else process.env.CUDA_HOME = CUDA_HOME;
      await folder[Symbol.asyncDispose]();
    },
  };
}

/** The state of the stand-in in this process. */
export interface CudartState {
  /** Allocations that were not freed, copies of streams, and streams, so far. */
  counts(): {
    readonly gpu: number;
    readonly pinned: number;
    readonly copies: number;
    readonly streams: number;
    /** Copies that begin or end in memory of the CPU, and copies on the GPU. */
    readonly hostCopies: number;
    readonly gpuCopies: number;
  };
  /** CUDA's error of all later copies, and of later allocations; 0 for none. */
  fail(copies: number, allocations: number): void;
}

export function cudartState(file: string): CudartState {
  const library = requireKoffi().load(file);
  const count = library.func("int standInCount(int which)") as (which: number) => number;
  return {
    counts: () => ({
      gpu: count(0),
      pinned: count(1),
      copies: count(2),
      streams: count(3),
      hostCopies: count(4),
      gpuCopies: count(5),
    }),
    fail: library.func("void standInFail(int copies, int allocations)") as CudartState["fail"],
  };
}
