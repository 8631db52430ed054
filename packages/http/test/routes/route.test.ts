import { ENDPOINT_GROUPS, type EndpointGroup, type ManagementRoute } from "@tritonjs/core/extension";
import type { Restrictions } from "@tritonjs/server";
import { describe, expect, it } from "vitest";
import { publicReason } from "../../src/routes/management.js";
import { routes } from "../../src/routes/v2-handler.js";
import { IdentityService, identityConfig } from "../support/identity-service.js";
import { send } from "../support/send.js";
import { startHttp } from "../support/start-http.js";

const service = new IdentityService(identityConfig("m", "INT32"), identityConfig("%ff", "INT32"));

const json = "application/json";

const text = "text/plain";

describe("route", () => {
  it.each([
    ["GET", "/v2", 200, json],
    ["GET", "/v2?x=1", 200, json],
    ["GET", "http://triton:8000/v2?x=1", 200, json],
    ["GET", "ftp://triton/v2", 404, text],
    ["GET", "/v2/health/live", 200, text],
    ["GET", "/v2/health/ready", 200, text],
    ["GET", "/v2/models/m", 200, json],
    ["GET", "/v2/models/m/versions/01", 200, json],
    ["GET", "/v2/models/m/config", 200, json],
    ["GET", "/v2/models/m/ready", 200, text],
    ["GET", "/v2/models/m/stats", 200, json],
    ["GET", "/v2/models/stats", 200, json],
    ["POST", "/v2/repository/index", 200, json],
    ["POST", "/v2/repository/some/index", 200, json],
    ["GET", "/v2/models/%ff", 200, json],
    ["GET", "/v2/models/none/ready", 400, text],
    ["GET", "/v2/models/none", 404, json],
    ["GET", `/v2/models/${"x".repeat(10_000)}`, 404, json],
    ["GET", "/v2/models/__proto__/config", 404, json],
    ["POST", "/v2/models/none/infer", 404, text],
    ["GET", "/", 404, text],
    ["GET", "/v2/", 404, text],
    ["GET", "//v2", 404, text],
    ["GET", "/V2", 404, text],
    ["GET", "/%76%32", 404, text],
    ["GET", "/v2/models", 404, text],
    ["GET", "/v2/models/m/", 404, text],
    ["GET", "/v2/models/m/versions/abc", 404, text],
    ["GET", "/v2/models/m/versions/-1", 404, text],
    ["GET", "/v2/models/m/%2e%2e/config", 404, text],
    ["POST", "/v2/models/m/infer/", 404, text],
    ["GET", "/metrics", 404, text],
    ["POST", "/v2", 405, json],
    ["HEAD", "/v2/health/live", 405, text],
    ["GET", "/v2/models/none/infer", 405, text],
    ["DELETE", "/v2/models/m/infer", 405, text],
    ["PROPFIND", "/v2/models/m/config", 405, json],
    ["TRACE", "/v2/models/m/infer", 405, text],
    ["POST", "/v2/models/stats", 405, json],
    ["GET", "/v2/repository/index", 405, json],
  ])("%s %s is %d %s", async (method, path, status, contentType) => {
    const answer = await send(await startHttp(service), { method, path });
    expect(answer.status).toBe(status);
    expect(answer.headers["content-type"]).toBe(contentType);
    if (status === 404 && contentType === text && path !== "/v2/models/none/infer") {
      expect(answer.text).toBe('{"error":"Not Found"}');
    }
    if (status === 405 && method !== "HEAD") expect(answer.text).toBe('{"error":"Method Not Allowed"}');
  });

  it("a method unknown to HTTP is answered", async () => {
    const { connect } = await import("node:net");
    const port = await startHttp(service);
    const received = await new Promise<string>((resolve, reject) => {
      let whole = "";
      const socket = connect(port, "localhost", () => socket.write("FOO /v2 HTTP/1.1\r\nHost: x\r\n\r\n"));
      socket.setEncoding("utf8");
      socket.on("data", (part: string) => {
        whole += part;
      });
      socket.on("end", () => resolve(whole));
      socket.on("error", reject);
    });
    expect(received).toMatch(/^HTTP\/1\.1 405 /);
    expect(received).toContain('{"error":"Method Not Allowed"}');
  });

  it("the content type of a request is ignored", async () => {
    const port = await startHttp(service);
    for (const contentType of [
      "\t",
      "application/json; charset=utf-16",
      "multipart/form-data; boundary=x",
      "a b",
    ]) {
      const answer = await send(port, {
        path: "/v2/models/m/infer",
        headers: { "content-type": contentType },
        body: '{"inputs":[{"name":"IN","datatype":"INT32","shape":[1],"data":[1]}]}',
      });
      expect(answer.status).toBe(200);
    }
  });

  it("the ready route answers 400 when the server is not ready", async () => {
    const waiting = new IdentityService();
    waiting.ready = false;
    const answer = await send(await startHttp(waiting), { method: "GET", path: "/v2/health/ready" });
    expect([answer.status, answer.text]).toEqual([400, ""]);
  });
});

const infer = "/v2/models/m/infer";

const body = '{"parameters":{"own":1},"inputs":[{"name":"IN","datatype":"INT32","shape":[1],"data":[1]}]}';

function identity() {
  return new IdentityService(identityConfig("m", "INT32"));
}

describe("route guards and settings", () => {
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
});

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

describe("route restrictions", () => {
  /** One path of each route, and its group in tritonserver. */
  const paths: Readonly<Record<string, EndpointGroup>> = {
    "/v2/models/m/infer": "inference",
    "/v2/models/m/versions/1/generate": "inference",
    "/v2/models/m/generate_stream": "inference",
    "/v2/models/stats": "statistics",
    "/v2/models/m/stats": "statistics",
    "/v2/models/m/versions/1/stats": "statistics",
    "/v2/health/live": "health",
    "/v2/health/ready": "health",
    "/v2/models/m/ready": "health",
    "/v2": "metadata",
    "/v2/models/m": "metadata",
    "/v2/models/m/config": "model-config",
    "/v2/repository/index": "model-repository",
    "/v2/repository/r/index": "model-repository",
    "/v2/repository/models/m/load": "model-repository",
    "/v2/repository/models/m/unload": "model-repository",
    "/v2/repository/models/m/rollout": "model-repository",
    "/v2/systemsharedmemory/status": "shared-memory",
    "/v2/systemsharedmemory/region/r/register": "shared-memory",
    "/v2/systemsharedmemory/unregister": "shared-memory",
    "/v2/cudasharedmemory/region/r/status": "shared-memory",
    "/v2/cudasharedmemory/region/r/register": "shared-memory",
    "/v2/cudasharedmemory/region/r/unregister": "shared-memory",
    "/v2/trace/setting": "trace",
    "/v2/models/m/trace/setting": "trace",
    "/v2/logging": "logging",
  };

  const restrictions: Restrictions = Object.fromEntries(
    ENDPOINT_GROUPS.map((group) => [group, { header: `${group}-key`, value: "secret" }]),
  );

  const rollout: ManagementRoute = {
    path: "repository/models/{model}/rollout",
    group: "model-repository",
    get: { id: "rollout", summary: "Of an extension", run: () => ({}) },
  };
  const identity = () =>
    Object.assign(new IdentityService(identityConfig("m", "INT32")), { management: [rollout] });

  describe("a restricted route", () => {
    it("exists in the test's table for every route", () => {
      for (const { path } of routes)
        expect(Object.keys(paths).filter((text) => path.test(text))).not.toEqual([]);
    });

    it.each(Object.entries(paths))("%s requires the header of %s for every method", async (path, group) => {
      const port = await startHttp(identity(), { restrictions });
      const others = Object.fromEntries(
        ENDPOINT_GROUPS.filter((other) => other !== group).map((other) => [`${other}-key`, "secret"]),
      );
      for (const method of ["GET", "POST", "DELETE"]) {
        for (const headers of [{}, { [`${group}-key`]: "Secret" }, others]) {
          const { status, text } = await send(port, { method, path, headers });
          expect([status, text]).toEqual([
            403,
            `{"error":"This API is restricted, expecting header '${group}-key'"}`,
          ]);
        }
        const { status } = await send(port, { method, path, headers: { [`${group}-key`]: "secret" } });
        expect(status).not.toBe(403);
      }
    });

    it("is restricted by the service unless the frontend has restrictions of its own", async () => {
      const service = Object.assign(identity(), { restrictions });
      const get = { method: "GET", path: "/v2/health/live" };
      expect(await send(await startHttp(service), get)).toMatchObject({ status: 403 });
      expect(await send(await startHttp(service, { restrictions: {} }), get)).toMatchObject({ status: 200 });
    });
  });
});

describe("public reason", () => {
  it.each([
    ["failed to stat file /srv/models/resnet/1/model.onnx", "failed to stat file resnet/1/model.onnx"],
    ["/srv/models/resnet/config.pbtxt: line 3", "resnet/config.pbtxt: line 3"],
    ["cannot read '/srv/my models/resnet/1/a.onnx': EACCES", "cannot read 'resnet/1/a.onnx': EACCES"],
    ["unable to find '/srv/someone/weights.bin'", "unable to find 'weights.bin'"],
    ["at load (file:///srv/models/resnet/1/model.js:3:7)", "at load (resnet/1/model.js:3:7)"],
    ["open C:\\models\\resnet\\1\\model.onnx failed", "open resnet/1/model.onnx failed"],
    ["cause:/srv/someone/secret", "cause:secret"],
    ["cannot list s3://bucket/models/resnet", "cannot list s3://bucket/models/resnet"],
    ["resnet/1/model.onnx and/or an I/O error", "resnet/1/model.onnx and/or an I/O error"],
    ["version 1 is at / now", "version 1 is at / now"],
    ["", ""],
  ])("shows clients no absolute path in '%s'", (reason, shown) => {
    expect(publicReason(reason, "resnet")).toBe(shown);
  });
});
