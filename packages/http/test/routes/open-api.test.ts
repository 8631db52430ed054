import { describe, expect, it } from "vitest";
import { openApiDocument } from "../../src/index.js";
import { openApiPage } from "../../src/routes/open-api.js";
import { matchRoute, routes } from "../../src/routes/v2-handler.js";
import { IdentityService, identityConfig } from "../support/identity-service.js";
import { send } from "../support/send.js";
import { startHttp } from "../support/start-http.js";

type Operation = {
  operationId: string;
  tags: string[];
  responses: Record<string, { headers?: Record<string, unknown> }>;
};

type Paths = Record<string, Record<string, Operation> & { parameters?: { name: string }[] }>;

const { paths, components } = openApiDocument() as unknown as {
  paths: Paths;
  components: { schemas: Record<string, unknown> };
};

const values: Record<string, string> = { model: "m", version: "1", region: "r", repository: "repo" };

function fill(path: string): string {
  return path.replace(/\{(\w+)\}/g, (_, name: string) => values[name]!);
}

const operations = Object.entries(paths).flatMap(([path, { parameters = [], ...methods }]) =>
  Object.entries(methods).map(([method, operation]) => ({ path, method, operation, parameters })),
);

describe("the OpenAPI document", () => {
  it.each(operations)("lists $method $path, which is a route", ({ path, method, operation, parameters }) => {
    const match = matchRoute(fill(path));
    expect(match?.route.methods).toContain(method.toUpperCase());
    expect(operation.tags).toEqual([match?.route.group]);
    const named = Object.keys(values).filter((name) => match?.[name as "model"] === values[name]);
    expect(named.sort()).toEqual(parameters.map(({ name }) => name).sort());
  });

  it.each(routes.map((route) => ({ name: route.path.source, route })))("has $name", ({ route }) => {
    const ofRoute = operations.filter(({ path }) => matchRoute(fill(path))?.route === route);
    const methods = ofRoute.map(({ method }) => method.toUpperCase());
    expect(new Set(methods)).toEqual(new Set(route.methods));
  });

  it("names each operation once, and refers only to existing schemas", () => {
    const ids = operations.map(({ operation }) => operation.operationId);
    expect(new Set(ids).size).toBe(ids.length);
    const text = JSON.stringify({ paths, components });
    for (const [, name] of text.matchAll(/"#\/components\/schemas\/(\w+)"/g)) {
      expect(components.schemas).toHaveProperty(name!);
    }
  });

  it("declares the retry-after header of rejected inferences", () => {
    const saying = operations.filter(
      ({ operation }) => operation.responses.default?.headers?.["Retry-After"],
    );
    expect(new Set(saying.map(({ operation }) => operation.tags[0]))).toEqual(new Set(["inference"]));
  });

  it("is served when the option is on", async () => {
    const service = () => new IdentityService(identityConfig("m", "INT32"));
    const get = { method: "GET", path: "/v2/openapi.json" };
    expect((await send(await startHttp(service()), get)).status).toBe(404);
    const answer = await send(await startHttp(service(), { openApi: true }), get);
    expect(answer.status).toBe(200);
    expect(JSON.parse(answer.text)).toEqual(JSON.parse(JSON.stringify(openApiDocument())));
  });
});

const page = openApiPage(openApiDocument());

const get = { method: "GET", path: "/v2/docs" };

describe("the page of the OpenAPI document", () => {
  it("shows each operation and each schema once, and its links lead to places on the page", () => {
    const { paths, components } = openApiDocument() as unknown as {
      paths: Record<string, Record<string, { operationId?: string } | undefined>>;
      components: { schemas: object };
    };
    const ids = [...page.matchAll(/ id="([^"]+)"/g)].map(([, id]) => id);
    expect(new Set(ids).size).toBe(ids.length);
    for (const [path, methods] of Object.entries(paths)) {
      expect(page).toContain(`<code>${path}</code>`);
      for (const operation of Object.values(methods))
        if (operation?.operationId) expect(ids).toContain(operation.operationId);
    }
    for (const name of Object.keys(components.schemas)) expect(ids).toContain(`schema-${name}`);
    for (const [, target] of page.matchAll(/href="#([^"]+)"/g)) expect(ids).toContain(target);
  });

  it("loads nothing and runs nothing", () => {
    expect(page).not.toMatch(/<(script|img|link|iframe|object|form)|\ssrc=|https?:|\son\w+=/);
  });

  it("is served with the option openApi alone", async () => {
    const service = () => new IdentityService(identityConfig("m", "INT32"));
    expect((await send(await startHttp(service()), get)).status).toBe(404);
    const { status, headers, text } = await send(await startHttp(service(), { openApi: true }), get);
    expect([status, headers["content-type"]]).toEqual([200, "text/html; charset=utf-8"]);
    expect(headers["content-security-policy"]).toMatch(/^default-src 'none'; style-src 'sha256-/);
    expect(text).toBe(page);
  });
});
