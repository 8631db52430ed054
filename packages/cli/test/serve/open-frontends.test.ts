import { InferenceServerClient } from "@tritonjs/client/grpc";
import { sample, Triton } from "@tritonjs/core";
import { describe, expect, it } from "vitest";
import { readArguments } from "../../src/options/read-arguments.js";
import {
  changedOptions,
  openChosenFrontends,
  openDashboard,
  openOpenAi,
} from "../../src/serve/open-frontends.js";
import { TemporaryFolder } from "../support/temporary-folder.js";

const free = [
  "--http-port=0",
  "--grpc-port=0",
  "--metrics-port=0",
  "--http-address=127.0.0.1",
  "--grpc-address=127.0.0.1",
];

function frontends(...args: string[]) {
  return openChosenFrontends(readArguments([...free, ...args], {}).values);
}

const [major = 0, minor = 0] = process.versions.node.split(".").map(Number);

const canReuse = major > 23 || (major === 23 && minor >= 1) || (major === 22 && minor >= 12);

describe("open frontends", () => {
  it("the command opens the frontends that are allowed", async () => {
    const names = async (...args: string[]) => (await frontends(...args)).map(({ name }) => name);
    expect(await names()).toEqual(["grpc", "http", "metrics"]);
    expect(await names("--allow-grpc=0", "--allow-metrics=off")).toEqual(["http"]);
    const routes = ["--vertex-ai-predict-route=/p", "--vertex-ai-health-route=/h"];
    const clouds = ["--allow-sagemaker=1", "--allow-vertex-ai=1", "--vertex-ai-port=8081", ...routes];
    expect(await names(...clouds)).toEqual(["grpc", "http", "metrics", "sagemaker", "vertex-ai"]);
  });

  it("frontends listen on the given addresses, metrics on that of HTTP, and apply the given restrictions", async () => {
    await using triton = new Triton();
    const args = ["--http-restricted-api=metadata:key=secret"];
    const { addresses } = await triton.serve({ frontends: await frontends(...args) });
    expect(addresses.metrics!.host).toBe("127.0.0.1");
    const ask = (headers: Record<string, string>) => fetch(`${addresses.http!.url}/v2`, { headers });
    expect((await ask({})).status).toBe(403);
    expect((await ask({ key: "secret" })).status).toBe(200);
    expect((await fetch(`${addresses.http!.url}/v2/health/live`)).status).toBe(200);
  });

  it("the HTTP frontend limits the size of requests", async () => {
    await using triton = new Triton();
    triton.bind({
      modelName: "echo",
      inputs: [{ name: "x", dtype: "FP32", shape: [-1] }],
      outputs: [{ name: "y", dtype: "FP32", shape: [-1] }],
      inferFunc: sample(({ x }) => ({ y: x })),
    });
    const { addresses } = await triton.serve({ frontends: await frontends("--http-max-input-size=200") });
    const send = async (count: number) => {
      const data = Array(count).fill(1);
      const inputs = [{ name: "x", datatype: "FP32", shape: [count], data }];
      const body = JSON.stringify({ inputs });
      return (await fetch(`${addresses.http!.url}/v2/models/echo/infer`, { method: "POST", body })).status;
    };
    expect([await send(1), await send(200)]).toEqual([200, 400]);
  });

  it("flags in the pattern of forwarded headers hold", async () => {
    await using triton = new Triton();
    const seen: string[] = [];
    triton.bind({
      modelName: "echo",
      inputs: [{ name: "x", dtype: "FP32", shape: [-1] }],
      outputs: [{ name: "y", dtype: "FP32", shape: [-1] }],
      inferFunc: sample(({ x }, { requests }) => {
        seen.push(...Object.keys(requests[0]!.parameters));
        return { y: x };
      }),
    });
    const pattern = "--http-header-forward-pattern=(?-i)^X-|(?i)^Y-";
    const { addresses } = await triton.serve({ frontends: await frontends(pattern) });
    const body = JSON.stringify({ inputs: [{ name: "x", datatype: "FP32", shape: [1], data: [1] }] });
    // `fetch` sends names in lower case.
    const headers = { "x-a": "1", "y-a": "2" };
    const answer = await fetch(`${addresses.http!.url}/v2/models/echo/infer`, {
      method: "POST",
      headers,
      body,
    });
    expect(answer.status).toBe(200);
    expect(seen).toEqual(["y-a"]);
  });

  it("the gRPC frontend limits the size of messages", async () => {
    await using triton = new Triton();
    const limit = "--grpc-max-receive-message-size=200";
    const { addresses } = await triton.serve({ frontends: await frontends(limit) });
    const client = new InferenceServerClient(addresses.grpc!.url);
    const refused = await client.isModelReady("m".repeat(300)).catch((error: Error) => error);
    expect(refused).toMatchObject({
      message: expect.stringMatching(
        /^Received message larger than max \(\d+ vs\. 200\)\. Use --grpc-max-receive-message-size to increase the limit\.$/,
      ),
    });
    client.close();
  });

  it("frontends reject invalid header patterns and missing or invalid certificates", async () => {
    await expect(frontends("--http-header-forward-pattern=[")).rejects.toThrow(
      "Bad option: \"--http-header-forward-pattern\".\nError parsing '(?i)[': missing ]: [",
    );
    await expect(frontends("--grpc-header-forward-pattern=[")).rejects.toThrow(
      'Bad option: "--grpc-header-forward-pattern"',
    );
    const missing = [
      "--grpc-use-ssl=true",
      "--grpc-server-cert=/nonexistent.pem",
      "--grpc-server-key=/nonexistent.pem",
    ];
    await expect(frontends(...missing)).rejects.toThrow('Bad option: "--grpc-server-cert"');
    await using folder = await TemporaryFolder.create();
    const pem = await folder.write("cert.pem", "no certificate");
    const bad = ["--grpc-use-ssl=true", `--grpc-server-cert=${pem}`, `--grpc-server-key=${pem}`];
    await using triton = new Triton();
    const start = async () => triton.serve({ frontends: await frontends(...bad) });
    await expect(start()).rejects.toThrow("failed to start GRPC service");
  });

  it.runIf(canReuse && process.platform === "linux")(
    `frontends share a port when asked to${canReuse ? "" : " (skipped: this Node cannot share ports)"}`,
    async () => {
      await using first = new Triton();
      await using second = new Triton();
      const reuse = ["--reuse-http-port=true", "--reuse-grpc-port=true", "--allow-metrics=false"];
      const { addresses } = await first.serve({ frontends: await frontends(...reuse) });
      const ports = [`--http-port=${addresses.http!.port}`, `--grpc-port=${addresses.grpc!.port}`];
      const again = await second.serve({ frontends: await frontends(...reuse, ...ports) });
      expect(again.addresses.http!.port).toBe(addresses.http!.port);
    },
  );

  it("--http-openapi serves the OpenAPI document, and --http-cors-origin lets pages of that origin use the server", async () => {
    await using triton = new Triton();
    const args = ["--http-openapi", "--http-cors-origin=https://app.example.com", "--allow-grpc=false"];
    const { addresses } = await triton.serve({ frontends: await frontends(...args) });
    const headers = { origin: "https://app.example.com" };
    const answer = await fetch(`${addresses.http!.url}/v2/openapi.json`, { headers });
    expect(await answer.json()).toMatchObject({ openapi: expect.stringMatching(/^3\.1/) });
    expect(answer.headers.get("access-control-allow-origin")).toBe(headers.origin);
    expect(() => readArguments(["--http-cors-origin=app.example.com"], {})).toThrow(
      'Bad option: "--http-cors-origin".\nexpected * or an origin such as https://app.example.com, got app.example.com',
    );
  });
});

describe("open dashboard", () => {
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
});

const read = (args: readonly string[], environment = {}) => readArguments(args, environment).values;

describe("--openai-port", () => {
  it("opens OpenAI's endpoints; without it there are none", async () => {
    expect(await openOpenAi(read([]))).toBeUndefined();
    await using triton = new Triton();
    triton.bind({
      modelName: "m",
      inputs: [{ name: "text_input", dtype: "BYTES", shape: [1] }],
      outputs: [{ name: "text_output", dtype: "BYTES", shape: [1] }],
      inferFunc: sample(({ text_input }) => ({ text_output: [text_input.text(0)] })),
    });
    await using folder = await TemporaryFolder.create();
    const file = await folder.write("keys", "# of the team\nfrom-file\n\n");
    const environment = { TRITONJS_OPENAI_API_KEY: "from-environment" };
    const args = ["--openai-port=0", "--openai-address=127.0.0.1", `--openai-api-key-file=${file}`];
    const frontend = (await openOpenAi(read(args, environment)))!;
    const { addresses } = await triton.serve({ frontends: [frontend] });
    const status = async (key: string) => {
      const headers = { authorization: `Bearer ${key}` };
      return (await fetch(`${addresses.openai!.url}/v1/models`, { headers })).status;
    };
    expect([await status("from-file"), await status("from-environment"), await status("other")]).toEqual([
      200, 200, 401,
    ]);
  });

  it.each([
    ["--openai-api-key-file=/none", "no such file"],
    ["--openai-api-key=", "expected a key"],
    ["--openai-restricted-api=chat:k=v", "expected one of inference"],
    ["--openai-restricted-api=inference", "<apis>:<key>=<value>"],
    ["--openai-chat-template=m", "<model>=<value>"],
    ["--openai-tool-call-family=m=latin", "expected one of harmony"],
    ["--openai-cors-origin=example.com", "an origin"],
    ["--openai-port=8000", "same address and port"],
  ])("refuses %s", async (option, fault) => {
    const open = async () => {
      const frontend = await openOpenAi(read(["--openai-port=0", option]));
      await using triton = new Triton();
      await triton.serve({ frontends: [frontend!] });
    };
    await expect(open()).rejects.toThrow(fault);
  });
});
