import type { ServeResult } from "@tritonjs/core";

/** Prints the URLs of the server, with commands to paste into a shell. */
export function printUrls({ addresses }: ServeResult): void {
  const { http, grpc, metrics } = addresses;
  console.log(`
HTTP     ${http!.url}
gRPC     ${grpc!.url}
metrics  ${metrics!.url}/metrics

Try:
  curl ${http!.url}/v2/health/ready -i
  curl ${http!.url}/v2/models/iris
  curl ${http!.url}/v2/models/linear/infer -d '{"inputs":[{"name":"x","shape":[1,2],"datatype":"FP32","data":[2,3]}]}'
  curl ${http!.url}/v2/models/iris/infer -d '{"inputs":[{"name":"measurements","shape":[1,4],"datatype":"FP32","data":[5.1,3.5,1.4,0.2]}]}'
  curl ${http!.url}/v2/models/iris/stats
  curl ${metrics!.url}/metrics`);
}
