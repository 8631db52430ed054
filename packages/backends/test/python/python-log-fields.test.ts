import { expect, it } from "vitest";
import { hasPython, withoutPython } from "../../../../test/support/python.js";
import { modelClass, PythonServer } from "./python-server.js";

it.skipIf(!hasPython)(
  `a line of pb_utils.Logger has the id of the request that runs${withoutPython}`,
  async () => {
    const fields: unknown[] = [];
    const logger = {
      takesSubjects: true as const,
      error() {},
      warn() {},
      debug() {},
      info: (message: string, about?: object) => void (message === "logged" && fields.push(about)),
    };
    const code = modelClass(`def execute(self, requests):
    pb_utils.Logger.log_info("logged")
    return [y([1]) for _ in requests]`);
    await using server = await PythonServer.start({ m: { code } }, { logger });
    await server.triton.infer("m", { X: [1] }, { id: "one" });
    await server.triton.infer("m", { X: [1] });
    const about = { module: "backend_model_instance", model: "m", version: 1 };
    expect(fields).toEqual([{ ...about, request_id: "one" }, about]);
  },
);
