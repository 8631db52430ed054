import { describe, expect, it } from "vitest";
import { ForeignServer } from "../support/foreign-server.js";
import { runCommand } from "../support/run-command.js";

const JSON_TENSORS = "--input-tensor-format json --output-tensor-format json";

const run = (server: ForeignServer, options: string) =>
  runCommand(`-m m -u ${server.url} --max-threads 1 --request-count 12 ${options}`);

const NO_STATISTICS =
  "[WARNING] The server does not tell its statistics: it lacks the extension 'statistics'";
const NO_CONFIG = "[WARNING] The server does not tell the configuration of model 'm'.";

describe("a server of the v2 protocol that is not Triton", () => {
  it("is measured with its own times where it has statistics and a configuration", async () => {
    const server = await ForeignServer.start({ statistics: true, config: true });
    const { code, output, errors } = await run(server, `-b 3 ${JSON_TENSORS}`);
    expect([code, errors]).toEqual([0, expect.not.stringContaining("does not tell")]);
    expect(server.shapes).toEqual(Array(12).fill([3, 2]));
    expect(output).toContain("Request count: 12\n");
    expect(output).toContain("Inference count: 36\n");
    expect(output).toContain("Avg request latency: 4000 usec (overhead 0 usec + queue 1000 usec + ");
  });

  it.each([
    { status: 404, body: '{"detail":"Not Found"}' },
    // The text of a framework that names the path, and so the word "models".
    { status: 404, body: "<pre>Cannot GET /v2/models/m/config</pre>" },
    { status: 405, body: "" },
    { status: 501, body: '{"error":"not implemented"}' },
  ])("is measured by its metadata where it answers $status $body for the configuration", async (config) => {
    const server = await ForeignServer.start({ config });
    const { code, output, errors } = await run(server, `-b 2 ${JSON_TENSORS}`);
    expect({ code, output: code === 0 ? "" : errors + output }).toEqual({ code: 0, output: "" });
    expect(server.shapes).toEqual(Array(12).fill([2, 2]));
    expect(output).toContain("Request count: 12\n");
    expect(output).not.toContain("Server:");
    expect(errors).toContain(NO_STATISTICS);
    expect(errors).toContain(NO_CONFIG);
  });

  it("shows its statistics without a configuration too", async () => {
    const server = await ForeignServer.start({ statistics: true });
    const { code, output, errors } = await run(server, JSON_TENSORS);
    expect(code).toBe(0);
    expect(output).toContain("  Server:\n    Inference count: 12\n");
    expect(errors).toContain(NO_CONFIG);
    expect(errors).not.toContain("statistics");
  });

  it("gets binary tensors unless told otherwise, and the report names the options where it refuses them", async () => {
    const server = await ForeignServer.start({});
    const { code, output, errors } = await runCommand(`-m m -u ${server.url} --request-count 3`);
    expect(code).toBe(99);
    expect(output).toContain("[ERROR] every request failed: [400] expected JSON");
    expect(errors).toContain(`If it refuses the requests, use ${JSON_TENSORS}.`);
  });

  it("ends with its text for a model that it does not have", async () => {
    const server = await ForeignServer.start({});
    const { code, errors } = await runCommand(`-m other -u ${server.url}`);
    expect(code).toBe(99);
    expect(errors).toBe("error: Not found: no path /v2/models/other/config\n");
  });
});
