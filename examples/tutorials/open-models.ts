import { readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { gpu } from "@tritonjs/backends/gpu";
import { InferenceServerClient } from "@tritonjs/client/http";
import { Triton } from "@tritonjs/core";
import { grpc } from "@tritonjs/grpc";
import { http } from "@tritonjs/http";
import { repository, type Substitute } from "@tritonjs/repository";

/** Path of a file of this example. The programs are in the folder `dist`. */
export const pathOf = (file: string) => fileURLToPath(new URL(`../${file}`, import.meta.url));

/** A server of some models of this example, and a client of it. */
export class OpenModels implements AsyncDisposable {
  private constructor(
    readonly triton: Triton,
    readonly client: InferenceServerClient,
    /** Address of the server: `http://localhost:…`. */
    readonly url: string,
    readonly grpcUrl: string,
  ) {}

  /**
   * Serves models with their configurations as they are, as this command does:
   *
   *   tritonjs serve --model-repository models --substitute substitutes.json --gpu-fallback=cpu \
   *     --model-control-mode=explicit --load-model=<name> ...
   */
  static async serve(names: readonly string[], folder = "models"): Promise<OpenModels> {
    const substitutes = JSON.parse(await readFile(pathOf("substitutes.json"), "utf8")) as Substitute[];
    const triton = new Triton({
      security: { restrictedEndpoints: [] },
      logInfo: false,
      // The rules also name models that are not loaded here.
      logWarning: false,
      extensions: [
        repository({
          modelRepository: pathOf(folder),
          modelControlMode: "explicit",
          loadModel: names,
          substitutes,
        }),
        gpu({ fallback: "cpu" }),
      ],
    });
    const { addresses } = await triton.serve({ frontends: [http({ port: 0 }), grpc({ port: 0 })] });
    const { url } = addresses.http!;
    return new OpenModels(triton, new InferenceServerClient(url), url, addresses.grpc!.url);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.client[Symbol.asyncDispose]();
    await this.triton.close();
  }
}
