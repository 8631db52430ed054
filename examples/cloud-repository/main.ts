import { readFile } from "node:fs/promises";
import { Triton } from "@tritonjs/core";
import { repository } from "@tritonjs/repository";
import { serviceOf } from "@tritonjs/server";
import { openAzure, openGoogle, openS3, type Storage } from "./storages.js";

/*
 * A model repository in a bucket of S3, of Google Cloud Storage and of Azure Storage. A new version is uploaded while the
 * model is in service.
 *
 *   npm start
 */

const models = new URL("../models/", import.meta.url);

/** Copies files of the folder `models` to a bucket. */
async function upload({ server }: Storage, ...names: string[]): Promise<void> {
  for (const name of names) await server.put(`models/${name}`, await readFile(new URL(name, models), "utf8"));
}

for (const open of [openS3, openGoogle, openAzure]) {
  const storage = await open();
  await using _ = storage.server;
  console.log(storage.path);
  await upload(storage, "times/config.pbtxt", "times/1/model.js");
  await using triton = new Triton({
    extensions: [
      repository({ modelRepository: storage.path, modelControlMode: "explicit", loadModel: ["times"] }),
    ],
  });
  await triton.ready();

  const print = async () => {
    const { y } = await triton.infer("times", { x: [[21]] });
    const { versions } = serviceOf(triton).modelMetadata("times", "");
    console.log(`  version ${versions.join()}: 21 becomes ${y!.get(0, 0)}`);
  };
  await print();
  // The load lists the bucket, and copies what has changed.
  await upload(storage, "times/2/model.js");
  await triton.loadModel("times");
  await print();
}
