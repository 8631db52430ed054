import { TracerProvider } from "@opentelemetry/sdk-trace";
import { openTelemetry } from "@tritonjs/core/opentelemetry";
import { expect, it } from "vitest";
import { hasPython } from "../../../../test/support/python.js";
import { modelClass, PythonServer } from "./python-server.js";

it.skipIf(!hasPython)("a Python model gets the context of its request's span", async () => {
  const code = modelClass(`def execute(self, requests):
    told = requests[0].trace().get_context()
    return [pb_utils.InferenceResponse([pb_utils.Tensor("Y", np.array([told], np.object_))])]`);
  const config = `input [ { name: "X" data_type: TYPE_FP32 dims: [ -1 ] } ]
output [ { name: "Y" data_type: TYPE_STRING dims: [ -1 ] } ]`;
  const tracer = openTelemetry({ tracerProvider: new TracerProvider() });
  await using server = await PythonServer.start({ told: { code, config } }, { tracer });
  const { Y } = await server.triton.infer<string>("told", { X: [1] });
  const [told] = (Y as unknown as { data: Uint8Array[] }).data;
  expect(JSON.parse(Buffer.from(told!).toString())).toEqual({
    traceparent: expect.stringMatching(/^00-[0-9a-f]{32}-[0-9a-f]{16}-01$/),
  });
});
