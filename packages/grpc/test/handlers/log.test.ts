import { status } from "@grpc/grpc-js";
import { inference } from "@tritonjs/protocol/grpc";
import { expect, test } from "vitest";
import { FakeService } from "../support/fake-service.js";
import { serve } from "../support/serve.js";

type Settings = NonNullable<inference.LogSettingsRequest.$Properties["settings"]>;

async function logSettings() {
  const service = new FakeService();
  const { client } = await serve(service);
  const change = (settings: Settings) =>
    client.call("LogSettings", inference.LogSettingsRequest, inference.LogSettingsResponse, { settings });
  return { service, change };
}

test("LogSettings returns the settings without changing them", async () => {
  const { change } = await logSettings();
  expect(await change({})).toMatchObject({
    settings: {
      log_file: { stringParam: "" },
      log_info: { boolParam: true },
      log_warning: { boolParam: true },
      log_error: { boolParam: true },
      log_verbose_level: { uint32Param: 0 },
      log_format: { stringParam: "default" },
    },
  });
});

test("LogSettings changes the named settings", async () => {
  const { service, change } = await logSettings();
  const answer = await change({
    log_info: { boolParam: false },
    log_verbose_level: { uint32Param: 2 },
    log_format: { stringParam: "ISO8601" },
  });
  expect(answer).toMatchObject({
    settings: { log_info: { boolParam: false }, log_verbose_level: { uint32Param: 2 } },
  });
  expect(service.log.settings).toMatchObject({
    info: false,
    warning: true,
    verboseLevel: 2,
    format: "ISO8601",
  });
});

test.each<[Settings, number, string]>([
  [
    { log_file: { stringParam: "x" } },
    status.UNIMPLEMENTED,
    "log file location can not be updated through network protocol",
  ],
  [{ log_info: { stringParam: "true" } }, status.INVALID_ARGUMENT, "expect boolean for 'log_info'"],
  [{ log_warning: { uint32Param: 1 } }, status.INVALID_ARGUMENT, "expect boolean for 'log_warning'"],
  [{ log_error: {} }, status.INVALID_ARGUMENT, "expect boolean for 'log_error'"],
  [
    { log_verbose_level: { boolParam: true } },
    status.INVALID_ARGUMENT,
    "expect int32 for 'log_verbose_level'",
  ],
  [{ log_format: { boolParam: true } }, status.INVALID_ARGUMENT, "expect string for 'log_format'"],
  [{ log_format: { stringParam: "x" } }, status.INVALID_ARGUMENT, "invalid argument for log_format, got: x"],
])("LogSettings rejects %j", async (settings, code, details) => {
  const { change } = await logSettings();
  await expect(change(settings)).rejects.toMatchObject({ code, details });
});

test("LogSettings keeps a valid change that comes before an invalid one", async () => {
  const { service, change } = await logSettings();
  const bad = change({ log_info: { boolParam: false }, log_error: { stringParam: "x" } });
  await expect(bad).rejects.toMatchObject({ code: status.INVALID_ARGUMENT });
  expect(service.log.settings).toMatchObject({ info: false, error: true });
});
