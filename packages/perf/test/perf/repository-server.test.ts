import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { serviceOf } from "@tritonjs/server";
import { expect, it } from "vitest";
import { repositoryServer } from "../../src/command/repository-server.js";
import { temporaryFolder } from "../support/analyze-command.js";

it("a server of the tools reads the parameters of models that ask for deadlines", async () => {
  const modelRepository = await temporaryFolder();
  await mkdir(join(modelRepository, "m", "1"), { recursive: true });
  const write = (deadlines: string) =>
    writeFile(
      join(modelRepository, "m", "config.pbtxt"),
      `backend: "identity" max_batch_size: 4 dynamic_batching { }
       input { name: "INPUT0" data_type: TYPE_FP32 dims: [ 1 ] } output { name: "OUTPUT0" data_type: TYPE_FP32 dims: [ 1 ] }
       parameters { key: "deadlines" value { string_value: "${deadlines}" } }`,
    );
  const open = () => repositoryServer({ modelRepository }, { logError: false, logInfo: false });

  await write("true");
  await using served = await open();
  await served.ready();
  expect(serviceOf(served).isModelReady("m", "")).toBe(true);

  await write("perhaps");
  await using broken = await open();
  await expect(broken.ready()).rejects.toThrow("parameter 'deadlines' of model 'm': expected true or false");
});
