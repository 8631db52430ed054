import { randomBytes } from "node:crypto";
import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Triton } from "@tritonjs/core";
import { repository } from "@tritonjs/repository";
import { serviceOf } from "@tritonjs/server";
import { decryptWith, SEALED } from "./decrypt-agent.js";
import { seal } from "./sealed-file.js";

const key = randomBytes(32);

// The owner of the model seals every file except the configuration.
const models = await mkdtemp(join(tmpdir(), "sealed-models-"));
const file = await readFile(new URL("../model/1/model.js", import.meta.url));
await mkdir(join(models, "secret", "1"), { recursive: true });
await writeFile(join(models, "secret", "1", `model.js${SEALED}`), seal(key, "1/model.js", file));
await writeFile(
  join(models, "secret", "config.pbtxt"),
  `backend: "javascript"
   model_repository_agents { agents [ { name: "decrypt" parameters { key: "key" value: "models" } } ] }`,
);

async function serve(keys: ReadonlyMap<string, Uint8Array>): Promise<void> {
  const decrypt = decryptWith((name) => keys.get(name));
  const logger = { error() {}, warn() {}, info() {}, debug() {} };
  await using triton = new Triton({
    logger,
    extensions: [repository({ modelRepository: models, repositoryAgents: { decrypt }, exitOnError: false })],
  });
  await triton.ready();
  const [row] = await serviceOf(triton).repositoryIndex(false);
  if (row?.state !== "READY") console.log(row?.reason);
  else console.log(`6 x 7 = ${(await triton.infer("secret", { x: [[6]] })).y!.get(0, 0)}`);
}

await serve(new Map([["models", key]]));
await serve(new Map([["models", randomBytes(32)]]));
await rm(models, { recursive: true });
