import { describe, expect, it } from "vitest";
import { openApiDocument } from "../../../src/index.js";
import { openApiPage } from "../../../src/routes/open-api.js";
import { IdentityService, identityConfig } from "../../support/identity-service.js";
import { send } from "../../support/send.js";
import { startHttp } from "../../support/start-http.js";

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
