import dns from "node:dns/promises";
import { once } from "node:events";
import { syncBuiltinESMExports } from "node:module";
import { connect } from "node:net";
import { expect, it, onTestFinished } from "vitest";
import { http } from "../src/index.js";
import { IdentityService } from "./support/identity-service.js";

/** Makes every host have two addresses until the end of the test. */
function resolveToTwoAddresses(): void {
  const { lookup } = dns;
  const replace = (by: unknown) => {
    Object.assign(dns, { lookup: by });
    syncBuiltinESMExports();
  };
  onTestFinished(() => replace(lookup));
  replace(async () => [{ address: "127.0.0.1" }, { address: "127.0.0.2" }]);
}

// Only Linux has more than the first address of the loopback network.
it.skipIf(process.platform !== "linux")(
  "the HTTP frontend answers on every address of its host and closes all of them",
  async () => {
    resolveToTwoAddresses();
    const frontend = http({ port: 0 });
    const { port } = await frontend.start(new IdentityService());
    for (const host of ["127.0.0.1", "127.0.0.2"]) {
      expect((await fetch(`http://${host}:${port}/v2/health/live`)).status).toBe(200);
    }
    const silent = connect(port, "127.0.0.2");
    await once(silent, "connect");
    const gone = once(silent, "close");
    await frontend.stop();
    await gone;
    await expect(fetch(`http://127.0.0.2:${port}/v2/health/live`)).rejects.toThrow();
  },
);
