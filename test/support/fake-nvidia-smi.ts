import { chmod, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { delimiter, dirname, join } from "node:path";

/**
 * A program `nvidia-smi` first on the path of this process while it is in use: a shell script.
 * @param script its lines; undefined for a path without the program
 */
export async function fakeNvidiaSmi(script: string | undefined): Promise<AsyncDisposable> {
  const folder = await mkdtemp(join(tmpdir(), "tritonjs-nvidia-smi-"));
  const path = process.env.PATH;
  if (script === undefined) process.env.PATH = folder;
  else {
    const program = join(folder, "nvidia-smi");
    await writeFile(program, `#!/bin/sh\n${script}\n`);
    await chmod(program, 0o755);
    process.env.PATH = [folder, dirname(process.execPath), path].join(delimiter);
  }
  return {
    async [Symbol.asyncDispose]() {
      process.env.PATH = path;
      await rm(folder, { recursive: true });
    },
  };
}

/** The lines of an `nvidia-smi` that lists this many GPUs. */
export function gpuList(count: number): string {
  return Array.from({ length: count }, (_, i) => `echo "${i}, GPU-${String(i).repeat(8)}-aaaa"`).join("\n");
}
