import { existsSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { lineLogger } from "@tritonjs/core/internal";
import { afterAll, describe, expect, it } from "vitest";
import { RepositoryOnDisk } from "../support/repository-on-disk.js";
import { useServer } from "./support/open-server.js";

const io = {
  input: 'input { name: "x" data_type: TYPE_FP32 dims: 1 }',
  output: 'output { name: "y" data_type: TYPE_FP32 dims: 1 }',
};
const config = (backend: string, more = "") => `backend: "${backend}"\n${io.input}\n${io.output}\n${more}`;

/** Configurations that name a file beside the repository. */
const hostile = {
  labels: `backend: "identity"\n${io.input}\n${io.output.replace("dims: 1", 'dims: 1 label_filename: "../../secret"')}`,
  "model-file": config("onnxruntime", 'default_model_filename: "../../secret"'),
  backend: config("../../secret"),
  runtime: config("identity", 'runtime: "../../secret"'),
};

let repository: RepositoryOnDisk;
const lines: string[] = [];
const line = lineLogger(
  (text) => lines.push(text),
  () => "default",
);

async function repositoryOptions() {
  repository = await RepositoryOnDisk.create({
    "m/1/": "",
    "m/config.pbtxt": config("identity"),
    ...Object.fromEntries(
      Object.entries(hostile).flatMap(([name, text]) => [
        [`${name}/1/`, ""],
        [`${name}/config.pbtxt`, text],
      ]),
    ),
  });
  return { modelRepository: repository.path, modelControlMode: "explicit", logger: line } as const;
}

const server = useServer(async () => ({
  triton: { ...(await repositoryOptions()), trace: {}, logVerbose: 1, allowClientSharedMemory: true },
}));
const open = useServer(() => ({
  triton: {
    modelRepository: repository.path,
    modelControlMode: "explicit",
    logger: line,
    allowModelFileOverride: true,
  },
}));
afterAll(() => repository[Symbol.asyncDispose]());

describe("a name of a load request", () => {
  it.each(["..", "../m", "m/../m", "/etc", "m\\..\\m", "."])(
    "does not leave the repository: %j",
    async (name) => {
      for (const client of server.clients) {
        await expect(client.loadModel(name)).rejects.toThrow(
          /path traversal characters|invalid model name|failed to poll/,
        );
      }
    },
  );

  it.each(["%2e%2e%2fm", "..%2fm", "m%00", "m%2f..%2fm"])("is not decoded twice: %s", async (name) => {
    const url = `http://localhost:${server.httpPort}/v2/repository/models/${name}/load`;
    expect((await fetch(url, { method: "POST" })).ok).toBe(false);
  });
});

describe("files of a load request", () => {
  const backend = { backend: "identity" };

  it("are refused over both protocols unless the server allows them", async () => {
    const files = { "1/model.py": Buffer.from("raise SystemExit") };
    for (const client of server.clients) {
      await expect(client.loadModel("m", { config: backend, files })).rejects.toMatchObject({
        code: "UNSUPPORTED",
        message: expect.stringContaining("Start the server with '--allow-model-file-override=true'"),
      });
    }
  });

  it.each(["../tritonjs-up", "/../tritonjs-up", "1/../../tritonjs-up", "1/../../../tritonjs-up"])(
    "stay in their folder when they are allowed: %s",
    async (path) => {
      const files = { [path]: Buffer.from("x") };
      for (const client of open.clients) {
        await expect(client.loadModel("m", { config: backend, files })).rejects.toThrow("failed to poll");
        expect(lines.at(-1)).toContain("must stay within model directory");
      }
      expect([tmpdir(), "/"].filter((folder) => existsSync(join(folder, "tritonjs-up")))).toEqual([]);
    },
  );
});

it.each(Object.keys(hostile))("a path in a configuration does not leave the model: %s", async (name) => {
  await expect(server.clients[0].loadModel(name)).rejects.toThrow(
    /expected a path inside|escapes|unable to find backend library|label/,
  );
});

it("settings cannot name the file of the log or of the traces", async () => {
  const file = join(tmpdir(), "tritonjs-written");
  for (const client of server.clients) {
    await expect(client.updateLogSettings({ log_file: file } as never)).rejects.toThrow(
      /location can not be updated/,
    );
    await expect(client.updateTraceSettings({ trace_file: file } as never)).rejects.toThrow(
      /can not be updated/,
    );
  }
  expect(existsSync(file)).toBe(false);
});

describe("the key of a shared memory object", () => {
  const refuses = async (key: string, why: string | RegExp) => {
    for (const client of server.clients) {
      await expect(client.registerSystemSharedMemory("r", { key, byteSize: 8 })).rejects.toThrow(why);
    }
  };

  it.each(["/../etc/passwd", "../shm", "/a/b", "/", "", "/.", "/..", "/a\0b"])(
    "names no file elsewhere: %j",
    (key) => refuses(key, /Unable to open shared memory region|failed to parse/),
  );

  it.each([
    "/triton_python_backend_shm_region_1",
    "triton_python_backend_shm_region_1",
    "//triton_python_backend_shm_region_",
  ])("is not one of a Python backend: %s", (key) => refuses(key, "reserved prefix"));
});

it("a name with line feeds forges no line of the log", async () => {
  const forged = "m\nE1121 12:00:00.000000 1 tritonjs:0] forged";
  for (const client of server.clients) {
    await client.loadModel(forged).catch(() => {});
    await client.infer(forged, { inputs: {} }).catch(() => {});
  }
  expect(lines.some((text) => text.includes("tritonjs:0] forged"))).toBe(true);
  expect(lines.flatMap((text) => text.split("\n")).filter((text) => text.startsWith("E1121 12:00"))).toEqual(
    [],
  );
});
