import { InferenceServerClient as GrpcClient } from "@tritonjs/client/grpc";
import { InferenceServerClient as HttpClient } from "@tritonjs/client/http";
import { sample } from "@tritonjs/core";
import { expect, it, onTestFinished } from "vitest";
import { openTriton } from "./support/open-triton.js";

it("responses of a decoupled model are counted by their index, over HTTP and gRPC alike", async () => {
  const triton = openTriton();
  const handle = triton.bind({
    modelName: "twice",
    inputs: [{ name: "x", dtype: "INT32", shape: [1] }],
    outputs: [{ name: "y", dtype: "INT32", shape: [1] }],
    inferFunc: sample(function* ({ x }) {
      yield { y: x };
      yield { y: x };
    }),
    config: { decoupled: true, batching: false },
  });
  const { addresses } = await triton.serve();
  for await (const _ of handle.stream({ x: [1] }));
  const http = new HttpClient(addresses.http!.url);
  const grpc = new GrpcClient(addresses.grpc!.url);
  onTestFinished(async () => {
    await http.close();
    grpc.close();
  });
  const [overHttp] = (await http.getInferenceStatistics("twice")).model_stats;
  const [overGrpc] = await grpc.getInferenceStatistics("twice");
  const { responseStats } = handle.statistics();
  expect(Object.keys(responseStats)).toEqual(["0", "1"]);
  expect(responseStats[1]).toMatchObject({ success: { count: 1 }, fail: { count: 0 } });
  expect(overHttp!.response_stats).toEqual(
    Object.fromEntries(
      Object.entries(responseStats).map(([index, stats]) => [
        index,
        {
          compute_infer: stats.computeInfer,
          compute_output: stats.computeOutput,
          success: stats.success,
          fail: stats.fail,
          empty_response: stats.emptyResponse,
          cancel: stats.cancel,
        },
      ]),
    ),
  );
  expect(JSON.stringify(overGrpc)).toContain("responseStats");
});
