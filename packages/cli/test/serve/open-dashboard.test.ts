import { Triton } from "@tritonjs/core";
import { expect, it } from "vitest";
import { readArguments } from "../../src/options/read-arguments.js";
import { changedOptions, openChosenFrontends, openDashboard } from "../../src/serve/open-frontends.js";

const free = [
  "--http-port=0",
  "--metrics-port=0",
  "--http-address=127.0.0.1",
  "--allow-grpc=0",
  "--dashboard",
];

const read = (...args: string[]) => readArguments([...free, ...args], {}).values;

it("--dashboard serves the page on the metrics port, behind the headers of --http-restricted-api", async () => {
  await using triton = new Triton();
  const values = read("--http-restricted-api=statistics:key=hidden");
  const frontends = await openChosenFrontends(values, await openDashboard(values));
  const { addresses } = await triton.serve({ frontends });
  const root = `${addresses.metrics!.url}/dashboard`;
  expect((await fetch(`${root}/`)).status).toBe(200);
  expect((await fetch(`${root}/api/info`)).status).toBe(403);
  const info = await (await fetch(`${root}/api/info`, { headers: { key: "hidden" } })).text();
  expect(JSON.parse(info).configuration).toMatchObject({
    "--dashboard": "true",
    "--http-restricted-api": "(set)",
  });
  expect(info).not.toContain("hidden");
  expect(await (await fetch(`${addresses.http!.url}/`)).text()).toContain(`${root}/`);
});

it("without --dashboard, the root of the HTTP port answers as before", async () => {
  await using triton = new Triton();
  const { addresses } = await triton.serve({ frontends: await openChosenFrontends(read()) });
  const answer = await fetch(`${addresses.http!.url}/`);
  expect([answer.status, await answer.text()]).toEqual([404, '{"error":"Not Found"}']);
});

it("the configuration on the page has the options that differ from the defaults", () => {
  expect(changedOptions(read("--http-port=0", "--strict-readiness=false"))).toMatchObject({
    "--http-port": "0",
    "--strict-readiness": "false",
  });
  expect(changedOptions(read())).not.toHaveProperty("--grpc-port");
});
