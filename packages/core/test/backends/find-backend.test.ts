import { TritonError } from "@tritonjs/protocol";
import { describe, expect, it } from "vitest";
import { RepositoryOnDisk } from "../../../../test/support/repository-on-disk.js";
import { findBackend } from "../../src/backends/find-backend.js";
import { emptyConfig } from "../../src/config/defaults.js";
import type { BackendFactory } from "../../src/instance/backend.js";

const own: BackendFactory = () => {
  throw new Error("not called");
};

/** Looks for the backend of a model `m` in /models/m/1. */
async function look(
  backend: string,
  {
    runtime = "",
    root,
    backends = {},
  }: { runtime?: string; root?: string; backends?: Record<string, BackendFactory> } = {},
) {
  const config = { ...emptyConfig(), name: "m", backend, runtime };
  return findBackend(config, "/models/m", 1, { backends, backendDirectory: root });
}

async function reasonOf(...args: Parameters<typeof look>): Promise<string> {
  return look(...args).then(
    () => "found",
    (error) => `${TritonError.from(error).code}: ${TritonError.from(error).message}`,
  );
}

describe("a backend of a backend directory", () => {
  it("is found by its name, and its configuration names the program", async () => {
    await using disk = await RepositoryOnDisk.create({
      "p/model.py": "",
      "j/backend.js": "",
      "m/backend.mjs": "",
      "both/model.py": "",
      "both/backend.js": "",
    });
    const found = async (name: string, runtime = "") => {
      const { config, inherits } = await look(name, { root: disk.path, runtime });
      return [config.runtime, inherits];
    };
    expect(await found("p")).toEqual(["model.py", "python"]);
    expect(await found("j")).toEqual(["backend.js", "javascript"]);
    expect(await found("m")).toEqual(["backend.mjs", "javascript"]);
    expect(await found("both")).toEqual(["model.py", "python"]);
    expect(await found("both", "backend.js")).toEqual(["backend.js", "javascript"]);
  });

  it("comes after those of the program and of the library, unless runtime names it", async () => {
    await using disk = await RepositoryOnDisk.create({
      "identity/model.py": "",
      "mine/model.py": "",
      "pytorch/model.py": "",
    });
    const root = disk.path;
    const { factory, config } = await look("mine", { root, backends: { mine: own } });
    expect(factory).toBe(own);
    expect(config.runtime).toBe("");
    expect((await look("identity", { root })).config.runtime).toBe("");
    expect((await look("identity", { root, runtime: "model.py" })).inherits).toBe("python");
    expect((await look("pytorch", { root, runtime: "model.py" })).config.runtime).toBe("model.py");
  });

  it("runs in the environment beside its program, unless the model names one", async () => {
    await using disk = await RepositoryOnDisk.create({
      "p/model.py": "",
      "p/pb_exec_env_model.py.tar.gz": "",
    });
    const { config } = await look("p", { root: disk.path });
    expect(config.parameters.EXECUTION_ENV_PATH?.stringValue).toBe(
      `${disk.path}/p/pb_exec_env_model.py.tar.gz`,
    );
  });

  it("is refused when its name or its runtime leads to another directory", async () => {
    await using disk = await RepositoryOnDisk.create({ "p/model.py": "", "inner/q/model.py": "" });
    const root = `${disk.path}/inner`;
    for (const name of ["../p", "..", ".", "q/../q", "a/b"]) {
      expect(await reasonOf(name, { root })).toBe(
        `INVALID_ARG: unable to find backend library for backend '${name}', try specifying runtime on the model configuration.`,
      );
    }
    expect(await reasonOf("q", { root, runtime: "../../p/model.py" })).toBe(
      `INVALID_ARG: backend library name '../../p/model.py' escapes backend directory '${root}/q', for model 'm', check ` +
        "model config runtime field",
    );
  });
});

describe("a backend that is not there is refused with Triton's words", () => {
  it("without a program of its name", async () => {
    expect(await reasonOf("nosuch", { root: "/nowhere" })).toBe(
      "INVALID_ARG: unable to find backend library for backend 'nosuch', try specifying runtime on the model configuration.",
    );
  });

  it("for a runtime that the directory does not have", async () => {
    expect(await reasonOf("nosuch", { root: "/nowhere", runtime: "model.py" })).toBe(
      "INVALID_ARG: unable to find Python backend based backend library 'model.py' for model 'm', searched: '/nowhere/nosuch/model.py'",
    );
    expect(await reasonOf("identity", { root: "/nowhere", runtime: "libtriton_other.so" })).toBe(
      "INVALID_ARG: unable to find backend library 'libtriton_other.so' for model 'm', searched: '/models/m/1' '/models/m' '/nowhere/identity' ",
    );
    expect(await reasonOf("identity", { runtime: "libtriton_identity.so" })).toBe("found");
  });

  it("and with what to do, where the directory is not set or has only a shared library", async () => {
    expect(await reasonOf("identity", { runtime: "model.py" })).toContain(
      "there is no backend directory; set backendDirectory (--backend-directory)",
    );
    await using disk = await RepositoryOnDisk.create({ "native/libtriton_native.so": "" });
    expect(await reasonOf("native", { root: disk.path })).toContain(
      "'libtriton_native.so' is a shared library for tritonserver, which cannot be loaded here",
    );
    expect(await reasonOf("vllm")).toContain("<backend directory>/vllm");
    expect(await reasonOf("tensorrt")).toContain("trtexec --onnx=<file>");
  });
});
