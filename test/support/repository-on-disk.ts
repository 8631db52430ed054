import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";

/** Files by path; a path that ends in `/` is an empty directory. */
export type RepositoryFiles = Readonly<Record<string, string | Uint8Array>>;

/** A model repository on disk, for one test. */
export class RepositoryOnDisk implements AsyncDisposable {
  private constructor(readonly path: string) {}

  static async create(files: RepositoryFiles): Promise<RepositoryOnDisk> {
    const repository = new RepositoryOnDisk(await mkdtemp(join(tmpdir(), "tritonjs-models-")));
    await repository.write(files);
    return repository;
  }

  async write(files: RepositoryFiles): Promise<void> {
    for (const [name, content] of Object.entries(files)) {
      const path = join(this.path, name);
      await mkdir(name.endsWith("/") ? path : dirname(path), { recursive: true });
      if (!name.endsWith("/")) await writeFile(path, content);
    }
  }

  async delete(name: string): Promise<void> {
    await rm(join(this.path, name), { recursive: true });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await rm(this.path, { recursive: true, force: true });
  }
}

/** The `config.pbtxt` of a model of the backend `identity`, with further fields if given. */
export function identityConfig(more = "", type = "TYPE_FP32"): string {
  return `backend: "identity"
max_batch_size: 4
input [ { name: "INPUT0" data_type: ${type} dims: [ -1 ] } ]
output [ { name: "OUTPUT0" data_type: ${type} dims: [ -1 ] } ]
${more}`;
}

/** The `config.pbtxt` of an ensemble in which each model gets the output of the previous one. */
export function chainConfig(...members: readonly string[]): string {
  const steps = members.map((name, i) => {
    const from = i === 0 ? "IN" : `t${i}`;
    const to = i === members.length - 1 ? "OUT" : `t${i + 1}`;
    return `{ model_name: "${name}" model_version: -1
      input_map { key: "INPUT0" value: "${from}" } output_map { key: "OUTPUT0" value: "${to}" } }`;
  });
  return `platform: "ensemble"
max_batch_size: 4
input [ { name: "IN" data_type: TYPE_FP32 dims: [ -1 ] } ]
output [ { name: "OUT" data_type: TYPE_FP32 dims: [ -1 ] } ]
ensemble_scheduling { step [ ${steps.join(", ")} ] }`;
}
