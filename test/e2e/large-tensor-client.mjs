import { parentPort, workerData } from "node:worker_threads";
import { InferenceServerClient as GrpcClient } from "@tritonjs/client/grpc";
import { InferenceServerClient as HttpClient } from "@tritonjs/client/http";

/* Sends one tensor, and says whether it came back. In a thread of its own, whose memory does not count. */
const { transport, address, elements } = workerData;
const client = transport === "http" ? new HttpClient(address) : new GrpcClient(address);
const data = new Float32Array(elements).map((_, i) => i % 1000);
const result = await client.infer("mirror", { inputs: { x: { datatype: "FP32", shape: [elements], data } } });
const answer = result.elements("y", "FP32");
parentPort.postMessage(
  Buffer.from(answer.buffer, answer.byteOffset, answer.byteLength).equals(Buffer.from(data.buffer)),
);
client.close();
