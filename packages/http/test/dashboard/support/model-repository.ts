import { onTestFinished } from "vitest";
import { RepositoryOnDisk } from "../../../../../test/support/repository-on-disk.js";

/** The path of a repository with one JavaScript model, which doubles numbers. */
export async function repositoryOf(name: string): Promise<string> {
  const files = await RepositoryOnDisk.create({
    [`${name}/config.pbtxt`]: `backend: "javascript"
input [ { name: "x" data_type: TYPE_INT32 dims: [ 1 ] } ]
output [ { name: "y" data_type: TYPE_INT32 dims: [ 1 ] } ]`,
    [`${name}/1/model.mjs`]: `export default (requests) =>
  requests.map(({ inputs }) => ({ y: inputs.x.data.map((value) => 2 * value) }));`,
  });
  onTestFinished(() => files[Symbol.asyncDispose]());
  return files.path;
}
