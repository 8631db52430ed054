import { request } from "node:http";
import { describe, expect, it } from "vitest";
import { identityConfig, RepositoryOnDisk } from "../../../../test/support/repository-on-disk.js";
import { newTriton, serveOpenAi } from "./support/openai-server.js";

/** Sends a POST with the path as it is: `fetch` would resolve its dots. */
function post(url: string, path: string): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    const { hostname, port } = new URL(url);
    request({ hostname, port, path, method: "POST" }, (response) => {
      response.resume();
      response.once("end", () => resolve(response.statusCode));
    })
      .once("error", reject)
      .end();
  });
}

describe("loading and unloading models", () => {
  it("lets one of several clients that load or unload a model at once do it", async () => {
    await using repository = await RepositoryOnDisk.create({
      "a/config.pbtxt": identityConfig(),
      "a/1/": "",
    });
    const triton = newTriton({
      modelRepository: repository.path,
      modelControlMode: "explicit",
      security: { restrictedEndpoints: [] },
    });
    const url = await serveOpenAi(triton);
    for (const change of ["load", "unload", "load"]) {
      const statuses = await Promise.all(
        Array.from({ length: 5 }, () => post(url, `/v1/models/a/${change}`)),
      );
      expect(statuses.sort()).toEqual([200, 400, 400, 400, 400]);
      const { data } = (await (await fetch(`${url}/v1/models`)).json()) as { data: object[] };
      expect(data).toHaveLength(change === "load" ? 1 : 0);
    }
  });

  it.each([
    ["..", 400],
    ["%20%20", 400],
    ["%0A%09", 400],
    ["%2E%2E%2Fetc", 400],
    ["../../etc", 404],
    ["model/..", 404],
    ["/etc/passwd", 404],
    ["model/subdir", 404],
    ["model/", 404],
    ["", 404],
  ])("answers as Triton's OpenAI frontend does for the name '%s'", async (name, status) => {
    await using repository = await RepositoryOnDisk.create({});
    const triton = newTriton({
      modelRepository: repository.path,
      modelControlMode: "explicit",
      security: { restrictedEndpoints: [] },
    });
    const url = await serveOpenAi(triton);
    expect(await post(url, `/v1/models/${name}/load`)).toBe(status);
    expect(await post(url, `/v1/models/${name}/unload`)).toBe(status);
  });
});
