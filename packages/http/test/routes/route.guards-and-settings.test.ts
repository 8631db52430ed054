import { describe, expect, it } from "vitest";
import { IdentityService, identityConfig } from "../support/identity-service.js";
import { send } from "../support/send.js";
import { startHttp } from "../support/start-http.js";

const infer = "/v2/models/m/infer";
const body = '{"parameters":{"own":1},"inputs":[{"name":"IN","datatype":"INT32","shape":[1],"data":[1]}]}';

function identity() {
  return new IdentityService(identityConfig("m", "INT32"));
}

describe("restricted endpoint groups", () => {
  const restrictions = {
    metadata: { header: "Admin-Key", value: "s3cret" },
    inference: { header: "infer-key", value: "a=b" },
  };

  it.each([
    ["GET", "/v2", {}, 403],
    ["GET", "/v2", { "admin-key": "S3cret" }, 403],
    ["GET", "/v2", { "admin-key": "" }, 403],
    ["GET", "/v2", { "admin-key": "s3cret" }, 200],
    ["GET", "/v2/models/none", {}, 403],
    ["POST", "/v2", {}, 403],
    ["POST", "/v2", { "admin-key": "s3cret" }, 405],
    ["POST", infer, { "admin-key": "s3cret" }, 403],
    ["POST", infer, { "infer-key": "a=b" }, 200],
    ["POST", "/v2/models/m/generate", {}, 403],
    ["POST", "/v2/models/m/generate_stream", {}, 403],
    ["GET", "/v2/health/live", {}, 200],
    ["GET", "/v2/foo", {}, 404],
  ])("%s %s with %j is %d", async (method, path, headers, status) => {
    const port = await startHttp(identity(), { restrictions });
    const answer = await send(port, { method, path, headers, body: method === "POST" ? body : undefined });
    expect(answer.status).toBe(status);
    if (status !== 403) return;
    expect(answer.headers["content-type"]).toBe("text/plain");
    const header = path === "/v2" || path === "/v2/models/none" ? "Admin-Key" : "infer-key";
    expect(answer.text).toBe(`{"error":"This API is restricted, expecting header '${header}'"}`);
  });
});

describe("forwarded headers", () => {
  const parametersOf = async (headers: Record<string, string>) => {
    const port = await startHttp(identity(), { headerForwardPattern: "my-.*|timeout|triton_" });
    return send(port, { path: infer, headers, body });
  };

  it("become parameters under the names that were sent", async () => {
    const answer = await parametersOf({ "MY-b": "2", "x-my-a": "1", other: "3" });
    expect(answer.text).toContain('"parameters":{"own":1,"MY-b":"2","x-my-a":"1"}');
  });

  it.each(["timeout", "triton_x"])("are rejected as %s", async (name) => {
    const answer = await parametersOf({ [name]: "5" });
    expect([answer.status, answer.headers["content-type"]]).toEqual([400, "application/json"]);
    expect(answer.text).toContain(`Header '${name}' is reserved for Triton usage and cannot be forwarded.`);
  });
});

describe("log settings over HTTP", () => {
  it("are read and changed", async () => {
    const port = await startHttp(identity());
    const post = (settings: string) => send(port, { path: "/v2/logging", body: settings });
    const initial =
      '{"log_file":"","log_info":true,"log_warning":true,"log_error":true,"log_verbose_level":0,"log_format":"default"}';
    expect((await send(port, { method: "GET", path: "/v2/logging" })).text).toBe(initial);
    expect((await post('{"log_info":null,"foo":1}')).text).toBe(initial);
    expect((await post('{"log_verbose_level":2,"log_format":"ISO8601"}')).text).toContain(
      '"log_verbose_level":2,"log_format":"ISO8601"',
    );
    expect(await post('{"log_info":false,"log_warning":"x"}')).toMatchObject({ status: 500 });
    expect((await post("{}")).text).toContain('"log_info":false,"log_warning":true');
    expect(await post('{"log_file":"x"}')).toMatchObject({ status: 501 });
    expect(await post('{"log_format":"x"}')).toMatchObject({ status: 503 });
    expect(await post("")).toMatchObject({ status: 500 });
  });
});

it.each([
  ["POST", "/v2/repository/models/m/load", 503, "explicit model load / unload is not allowed"],
  ["POST", "/v2/repository/models/m/unload", 503, "explicit model load / unload is not allowed"],
  ["POST", "/v2/repository/r/models/m/load", 501, "'repository_name' specification is not supported"],
  ["GET", "/v2/repository/models/m/load", 405, "Method Not Allowed"],
  ["GET", "/v2/trace/setting", 503, "the server does not support tracing"],
  ["POST", "/v2/models/m/trace/setting", 503, "the server does not support tracing"],
  ["PUT", "/v2/trace/setting", 405, "Method Not Allowed"],
  ["GET", "/v2/models/m/versions/1/trace/setting", 404, "Not Found"],
  ["GET", "/v2/systemsharedmemory/status", 200, "[]"],
  ["GET", "/v2/cudasharedmemory/region/r/status", 404, "Unable to find cuda shared memory region: 'r'"],
  ["POST", "/v2/systemsharedmemory/region/r/register", 501, "Client shared memory is disabled."],
  ["POST", "/v2/cudasharedmemory/unregister", 501, "Client shared memory is disabled."],
  ["POST", "/v2/systemsharedmemory/status", 405, "Method Not Allowed"],
])("%s %s, which this server does not offer, is %d", async (method, path, status, text) => {
  const answer = await send(await startHttp(identity()), { method, path });
  expect(answer.status).toBe(status);
  expect(answer.text).toContain(text);
});
