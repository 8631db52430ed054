import { readFileSync } from "node:fs";
import { join } from "node:path";
import { readArguments } from "@tritonjs/cli";
import { Triton } from "@tritonjs/core";
import { textGeneration } from "@tritonjs/llm";
import { openai } from "@tritonjs/llm/openai";
import { expect, it } from "vitest";
import { parse } from "yaml";
import { repositoryRoot } from "../support/repository.js";

const read = (path: string) => parse(readFileSync(join(repositoryRoot, "deploy", path), "utf8"));
const values = read("gateway/endpoint-picker-values.yaml");
const pool = read("gateway/inference-pool.yaml");

it("the endpoint picker asks for metrics that the port of the OpenAI endpoints has", async () => {
  await using triton = new Triton();
  triton.bind({
    modelName: "stories",
    inferFunc: textGeneration({
      directory: join(repositoryRoot, "examples/text-generation/models/stories/1"),
    }),
  });
  const { addresses } = await triton.serve({ frontends: [openai({ port: 0 })] });
  const page = await (await fetch(`${addresses.openai!.url}/metrics`)).text();
  const asked = Object.values<string>(values.inferenceExtension.flags);
  expect(asked).toHaveLength(3);
  for (const metric of asked) expect(page).toMatch(new RegExp(`^${metric}\\{.*model="stories".*\\} 0$`, "m"));
});

it("the pool names the port of the OpenAI endpoints, and the labels of the deployment", () => {
  const [{ number }] = pool.spec.targetPorts;
  const { values: options } = readArguments(["--model-repository=/models", `--openai-port=${number}`], {});
  expect([options["openai-port"], values.inferencePool.targetPortNumber]).toEqual([number, number]);
  const deployment = read("kubernetes/base/deployment.yaml");
  expect(pool.spec.selector.matchLabels).toEqual(deployment.spec.selector.matchLabels);
  expect(values.inferencePool.modelServers.matchLabels).toEqual(deployment.spec.selector.matchLabels);
});
