import { createService } from "./service.js";

// In a container, HOST is 0.0.0.0.
const host = process.env.HOST ?? "localhost";
const triton = createService({ httpAddress: host, grpcAddress: host, metricsAddress: host });
const { addresses } = await triton.serve();
console.log(`HTTP     ${addresses.http!.url}`);
console.log(`gRPC     ${addresses.grpc!.url}`);
console.log(`metrics  ${addresses.metrics!.url}/metrics`);

for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => triton.close());
