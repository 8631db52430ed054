import crypto from "node:crypto";
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import { join } from "node:path";
import { readArguments } from "@tritonjs/cli";
import { afterAll, describe, expect, it, onTestFinished, vi } from "vitest";
import { blocks, documents, promisedOutput } from "../docs/markdown.js";
import { makeCertificates } from "../support/certificates.js";
import { Program } from "../support/program.js";
import { repositoryRoot } from "../support/repository.js";

describe("the page on security", () => {
  const page = documents().find(({ path }) => path === "docs/security.md")!;

  /** Inside the repository, so that the packages resolve as in a project that installed them. */
  const folder = join(repositoryRoot, "node_modules", ".cache", `tls-recipes-${process.pid}`);

  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  describe("the recipe for TLS", () => {
    it("encrypts both protocols, and refuses clients without a certificate", async () => {
      const source = blocks(page, "js")[0]!.code;
      const { ca, server, client } = await makeCertificates();
      mkdirSync(folder, { recursive: true });
      const files = {
        "root.pem": ca,
        "server.pem": server.cert,
        "server-key.pem": server.key,
        "client.pem": client.cert,
        "client-key.pem": client.key,
        "recipe.mjs": source,
      };
      for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text);
      const { code, stdout, stderr } = await Program.node(join(folder, "recipe.mjs"), [], folder).ended;
      expect({ code, stderr: code === 0 ? "" : stderr }).toEqual({ code: 0, stderr: "" });
      expect(stdout.trimEnd().split("\n")).toEqual(["[ 2, 4 ]", ...promisedOutput(source)]);
    });

    it("for the command line has options that exist", () => {
      const text = blocks(page, "sh")[0]!.code;
      const [, , ...args] = text.replaceAll("\\\n", " ").trim().split(/\s+/);
      const { values, warnings } = readArguments(args, {});
      expect(warnings).toEqual([]);
      expect(values).toMatchObject({
        "grpc-use-ssl-mutual": true,
        "grpc-server-cert": "server.pem",
        "grpc-server-key": "server-key.pem",
        "grpc-root-cert": "root.pem",
      });
    });
  });
});

describe("tokens", () => {
  it("every check of a token compares in constant time, whatever is sent", async () => {
    const compare = vi.spyOn(crypto, "timingSafeEqual");
    syncBuiltinESMExports();
    onTestFinished(() => {
      compare.mockRestore();
      syncBuiltinESMExports();
    });
    const { AccessGate } = await import("../../packages/server/src/access/access-control.js");
    const { Secret } = await import("../../packages/llm/src/openai/openai-access.js");
    const gate = new AccessGate({ trace: { header: "key", value: "secret" } });
    const secret = new Secret("secret");
    for (const sent of ["secret", "secre", "secret!", "", "x".repeat(10_000)]) {
      compare.mockClear();
      const isRight = sent === "secret";
      expect(gate.missingHeader("trace", () => sent)).toBe(isRight ? undefined : "key");
      expect(secret.isEqual(sent)).toBe(isRight);
      expect(compare).toHaveBeenCalledTimes(2);
      for (const [one, other] of compare.mock.calls) expect(one.byteLength).toBe(other.byteLength);
    }
  });
});
