import { expect, it } from "vitest";
import { readArguments } from "../../src/options/read-arguments.js";
import { openManagementWarning } from "../../src/serve/open-management.js";

const warning = (...args: string[]) => openManagementWarning(readArguments(args, {}).values);

const groups = "model-repository,shared-memory,trace,logging";

it("management that is open to other machines is named in one line, with the options that close it", () => {
  expect(warning()).toBe(
    "other machines can use model-repository, shared-memory, trace, logging over HTTP on 0.0.0.0 and gRPC on 0.0.0.0; " +
      `to close them: --http-address=127.0.0.1 or --http-restricted-api=${groups}:<header>=<secret>; ` +
      `--grpc-address=127.0.0.1 or --grpc-restricted-protocol=${groups}:<header>=<secret>`,
  );
});

it("only the groups and frontends that are open are named", () => {
  expect(
    warning("--allow-grpc=false", "--http-restricted-api=model-repository,trace,logging:key=secret"),
  ).toBe(
    "other machines can use shared-memory over HTTP on 0.0.0.0; to close them: --http-address=127.0.0.1 or " +
      "--http-restricted-api=shared-memory:<header>=<secret>",
  );
});

it.each([
  [["--http-address=127.0.0.1", "--grpc-address=localhost"]],
  [["--http-address=::1", "--grpc-address=127.8.0.1"]],
  [["--allow-http=false", "--grpc-address=127.0.0.1"]],
  [[`--http-restricted-api=${groups}:key=secret`, `--grpc-restricted-protocol=${groups}:key=secret`]],
])("nothing is said where it is closed: %j", (args) => {
  expect(warning(...args)).toBeUndefined();
});
