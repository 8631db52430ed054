import { expect, it } from "vitest";
import { IdentityService, identityConfig } from "../support/identity-service.js";
import { send } from "../support/send.js";
import { startHttp } from "../support/start-http.js";

const service = new IdentityService(identityConfig("m", "INT32"), identityConfig("%ff", "INT32"));
const json = "application/json";
const text = "text/plain";

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
