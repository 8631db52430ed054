import { promisify } from "node:util";
import { credentials, type GrpcObject, type ServiceClientConstructor } from "@grpc/grpc-js";
import { batch, Triton } from "@tritonjs/core";
import { grpc } from "@tritonjs/grpc";
import { GrpcReflection } from "grpc-js-reflection-client";

/*
 * A client without `.proto` files: the server describes its own services and messages.
 *
 *   npm start
 *   grpcurl -plaintext localhost:8001 describe inference.GRPCInferenceService
 */

const SERVICE = "inference.GRPCInferenceService";

await using triton = new Triton();
triton.bind({
  modelName: "double",
  inputs: [{ name: "x", dtype: "FP32", shape: [1] }],
  outputs: [{ name: "y", dtype: "FP32", shape: [1] }],
  inferFunc: batch(({ x }) => ({ y: x.data.map((value) => 2 * value) })),
});
// Reflection is off unless the program turns it on.
const { addresses } = await triton.serve({ frontends: [grpc({ port: 0, reflection: true })] });
const { url } = addresses.grpc!;

const reflection = new GrpcReflection(url, credentials.createInsecure());
for (const service of await reflection.listServices()) console.log(service);
const methods = await reflection.listMethods(SERVICE);
console.log(`methods of the first: ${methods.length}, with ${methods[0]!.name} and ${methods.at(-1)!.name}`);

// The descriptors give a client of grpc-js, as `.proto` files do with @grpc/proto-loader.
const descriptor = await reflection.getDescriptorBySymbol(SERVICE);
const { inference } = descriptor.getPackageObject({ keepCase: true });
const Client = (inference as GrpcObject).GRPCInferenceService as ServiceClientConstructor;
const client = new Client(url, credentials.createInsecure());
const infer = promisify(client.ModelInfer!.bind(client)) as (request: object) => Promise<{
  readonly raw_output_contents: readonly Buffer[];
}>;
const { raw_output_contents: outputs } = await infer({
  model_name: "double",
  inputs: [{ name: "x", datatype: "FP32", shape: [1, 1], contents: { fp32_contents: [21] } }],
});
console.log(`double of 21: ${outputs[0]!.readFloatLE(0)}`);
client.close();
