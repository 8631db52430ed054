import { expect, it } from "vitest";
import { RepositoryInS3, S3_KEYS } from "../../../../test/support/repository-in-s3.js";
import { identityConfig } from "../../../../test/support/repository-on-disk.js";
import { run } from "../../src/run.js";
import { TestTerminal } from "../support/test-terminal.js";

Object.assign(process.env, S3_KEYS);

async function command(...args: string[]) {
  const terminal = new TestTerminal();
  const code = await run(args, terminal);
  return { code, text: terminal.output, errors: terminal.errors };
}

it("config check finds problems in a bucket and names them by their paths in the bucket", async () => {
  await using bucket = await RepositoryInS3.create({
    "good/config.pbtxt": identityConfig(),
    "good/1/": "",
    "bad/config.pbtxt": `${identityConfig()}\nmax_batch: 3\n`,
    "bad/01/": "",
  });
  const { path } = bucket;
  const { code, text } = await command("config", "check", path, "--load");
  expect(code).toBe(1);
  expect(text).toContain(`${path}/bad/config.pbtxt:6:10: error: Message type`);
  expect(text).toContain(`${path}/bad: warning: ignore version directory '01'`);
  expect(text).toContain("2 models: 1 error, 1 warning");
});

it("config show and types read models from a bucket", async () => {
  await using bucket = await RepositoryInS3.create({
    "m/config.pbtxt": identityConfig(),
    "m/1/": "",
    "other/config.pbtxt": "broken",
  });
  const shown = await command("config", "show", `${bucket.path}/m/`);
  expect(shown.code).toBe(0);
  expect(shown.text).toContain('name: "m"');
  expect(bucket.downloads).toEqual(["m/config.pbtxt"]);
  const types = await command("types", bucket.path);
  expect(types.text).toContain('"m": {');
  expect(types.errors).toContain(`${bucket.path}/other/config.pbtxt`);
});

it("config check ends with the reason when the bucket cannot be reached", async () => {
  const bucket = await RepositoryInS3.create({});
  await bucket[Symbol.asyncDispose]();
  const { code, errors } = await command("config", "check", bucket.path);
  expect(code).not.toBe(0);
  expect(errors).toMatch(/Could not list contents of directory at s3:.*ECONNREFUSED/);
});
