import { Server, ServerCredentials, type ServiceDefinition, type sendUnaryData } from "@grpc/grpc-js";
import { sample, Triton } from "@tritonjs/core";
import { addV2Service } from "@tritonjs/grpc";

/*
 * A gRPC server of an application serves models too: on its own port, with its own credentials, beside its own services.
 *
 *   PORT=3000 npm start
 *   tritonclient.grpc.InferenceServerClient("localhost:3000").get_model_metadata("double")
 */

const triton = new Triton();
const double = triton.bind({
  modelName: "double",
  inputs: [{ name: "x", dtype: "FP32", shape: [-1] }],
  outputs: [{ name: "y", dtype: "FP32", shape: [-1] }],
  inferFunc: sample(({ x }) => ({ y: x.data.map((value) => 2 * value) })),
});

// A service of the application, as protoc or @grpc/proto-loader would make it. It may call the model in process.
const calculator: ServiceDefinition = {
  double: {
    path: "/app.Calculator/Double",
    requestStream: false,
    responseStream: false,
    requestSerialize: (value: number) => Buffer.from(String(value)),
    requestDeserialize: (bytes) => Number(bytes),
    responseSerialize: (value: number) => Buffer.from(String(value)),
    responseDeserialize: (bytes) => Number(bytes),
  },
};

const server = new Server({ "grpc.max_receive_message_length": 64 * 1024 * 1024 });
server.addService(calculator, {
  double: async ({ request }: { request: number }, respond: sendUnaryData<number>) => {
    const { y } = await double.inferSample({ x: [request] });
    respond(null, y.data[0]);
  },
});
addV2Service(server, triton);

const address = `localhost:${process.env.PORT ?? 3000}`;
server.bindAsync(address, ServerCredentials.createInsecure(), (error, port) => {
  if (error) throw error;
  console.log(`listening at localhost:${port}`);
});

for (const signal of ["SIGINT", "SIGTERM"]) {
  process.once(signal, async () => {
    await triton.close();
    server.tryShutdown(() => {});
  });
}
