import { describe } from "vitest";
import { type BadInput, expectAnswers, useServer } from "./bad-inputs.js";

const server = useServer();

const get = (path: string, status: number, text?: string): BadInput => ({
  method: "GET",
  path,
  status,
  text,
});

describe("wrong paths", () => {
  expectAnswers(server, {
    "/v2/models/%2e%2e%2fetc": get(
      "/v2/models/%2e%2e%2fetc",
      404,
      "Request for unknown model: '%2e%2e%2fetc' is not found",
    ),
    "/v2/models/../../etc/passwd": get("/v2/models/../../etc/passwd", 404, "Not Found"),
    "/v2/models/a%00b": get("/v2/models/a%00b", 404, "Request for unknown model: 'a%00b' is not found"),
    "/v2/models/%ff": get("/v2/models/%ff", 404, "Request for unknown model: '%ff' is not found"),
    "/v2/models/%": get("/v2/models/%", 404, "Request for unknown model: '%' is not found"),
    "/v2/models/f%7032": get("/v2/models/f%7032", 404, "Request for unknown model: 'f%7032' is not found"),
    "/v2/models//ready": get("/v2/models//ready", 404, "Not Found"),
    "/v2/models/fp32/": get("/v2/models/fp32/", 404, "Not Found"),
    "/v2/models/fp32/nothing": get("/v2/models/fp32/nothing", 404, "Not Found"),
    "//v2": get("//v2", 404, "Not Found"),
    "/v2/": get("/v2/", 404, "Not Found"),
    "/V2": get("/V2", 404, "Not Found"),
    "/v2/models/fp32/versions/0": get(
      "/v2/models/fp32/versions/0",
      404,
      "Request for unknown model: 'fp32' version 0 is not found",
    ),
    "/v2/models/fp32/versions/-1": get("/v2/models/fp32/versions/-1", 404, "Not Found"),
    "/v2/models/fp32/versions/1e1": get("/v2/models/fp32/versions/1e1", 404, "Not Found"),
    "/v2/models/fp32/versions/latest": get("/v2/models/fp32/versions/latest", 404, "Not Found"),
    "/v2/models/fp32/versions/18446744073709551615": get(
      "/v2/models/fp32/versions/18446744073709551615",
      400,
      "failed to get model version from specified version string '18446744073709551615' (details:",
    ),
    "/v2/models/fp32/versions/99999999999999999999999999": get(
      "/v2/models/fp32/versions/99999999999999999999999999",
      400,
      "failed to get model version from specified version string '99999999999999999999999999'",
    ),
    "/v2/models/fp32/versions/9007199254740993": get(
      "/v2/models/fp32/versions/9007199254740993",
      404,
      "Request for unknown model: 'fp32' version 9007199254740993 is not found",
    ),
    "/v2/models/__proto__": get(
      "/v2/models/__proto__",
      404,
      "Request for unknown model: '__proto__' is not found",
    ),
    "/v2/models/constructor/config": get(
      "/v2/models/constructor/config",
      404,
      "Request for unknown model: 'constructor' is not found",
    ),
    "/v2/models/toString/stats": get(
      "/v2/models/toString/stats",
      400,
      "requested model 'toString' is not available",
    ),
    "a model name of 10 000 letters": get(
      `/v2/models/${"x".repeat(10_000)}`,
      404,
      "Request for unknown model: 'x",
    ),
    "a path of 20 000 letters": get(
      `/v2/models/${"x".repeat(20_000)}`,
      431,
      "Request Header Fields Too Large",
    ),
    "headers of 20 000 letters": {
      ...get("/v2", 431, "Request Header Fields Too Large"),
      headers: { "x-long": "x".repeat(20_000) },
    },
    "five hundred headers": {
      // Newer versions of Node reject all other methods; older versions let some through.
      ...get("/v2", 200),
      headers: Object.fromEntries(Array.from({ length: 500 }, (_, i) => [`x-${i}`, "1"])),
    },
  });
});

const routes: readonly (readonly [path: string, methods: readonly string[]])[] = [
  ["/v2", ["GET"]],
  ["/v2/health/live", ["GET"]],
  ["/v2/health/ready", ["GET"]],
  ["/v2/models/stats", ["GET"]],
  ["/v2/models/fp32", ["GET"]],
  ["/v2/models/fp32/ready", ["GET"]],
  ["/v2/models/fp32/config", ["GET"]],
  ["/v2/models/fp32/stats", ["GET"]],
  ["/v2/models/fp32/versions/1/infer", ["POST"]],
  ["/v2/models/fp32/infer", ["POST"]],
  ["/v2/models/fp32/generate", ["POST"]],
  ["/v2/models/fp32/generate_stream", ["POST"]],
  ["/v2/models/fp32/trace/setting", ["GET", "POST"]],
  ["/v2/trace/setting", ["GET", "POST"]],
  ["/v2/logging", ["GET", "POST"]],
  ["/v2/repository/index", ["POST"]],
  ["/v2/repository/models/fp32/load", ["POST"]],
  ["/v2/repository/models/fp32/unload", ["POST"]],
  ["/v2/systemsharedmemory/status", ["GET"]],
  ["/v2/cudasharedmemory/region/r/register", ["POST"]],
  ["/v2/systemsharedmemory/unregister", ["POST"]],
];

describe("wrong methods", () => {
  const methods = ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "TRACE", "PROPFIND"];
  const wrong = routes.flatMap(([path, allowed]) =>
    methods
      .filter((method) => !allowed.includes(method))
      .map((method): [string, BadInput] => [
        `${method} ${path}`,
        { method, path, status: 405, text: method === "HEAD" ? "" : '{"error":"Method Not Allowed"}' },
      ]),
  );
  expectAnswers(server, Object.fromEntries(wrong));
});
