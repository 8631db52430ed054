import { fileURLToPath } from "node:url";
import { Triton } from "@tritonjs/core";
import { sageMaker } from "@tritonjs/http/cloud";
import { repository } from "@tritonjs/repository";
import { body, call } from "./call.js";

/** Where the platform unpacks the archives of models: `/opt/ml/models` in a container. */
export const unpacked = fileURLToPath(new URL("../unpacked", import.meta.url));

/** A multi-model endpoint: the platform loads a model when a request for it comes, and unloads it to make room. */
export async function multiModelEndpoint(): Promise<void> {
  await using triton = new Triton({
    extensions: [repository({ modelControlMode: "explicit", modelNamespacing: true })],
  });
  const endpoint = sageMaker({
    port: 0,
    address: "127.0.0.1",
    pingMode: "live",
    multiModel: true,
    modelsDirectory: unpacked,
  });
  const { addresses } = await triton.serve({ frontends: [endpoint] });
  const send = (method: string, route: string, init: RequestInit = {}) =>
    call("multi-model", addresses.sagemaker!.url, route, { method, ...init });

  // The platform names a model by the hash of its archive.
  const model = { model_name: "3f9c", url: `${unpacked}/3f9c/model` };
  const headers = { "x-amzn-sagemaker-target-model": "double.tar.gz" };
  await send("POST", "/models", { headers, body: JSON.stringify(model) });
  await send("POST", "/models/3f9c/invoke", { body });
  await send("DELETE", "/models/3f9c");
  await send("POST", "/models/3f9c/invoke", { body });
}
