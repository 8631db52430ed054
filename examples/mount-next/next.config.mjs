/** @type {import("next").NextConfig} */
export default {
  // Bundled, these packages would not find their worker programs and native libraries.
  serverExternalPackages: ["@tritonjs/core", "@tritonjs/backends", "@tritonjs/http", "onnxruntime-node"],
  // Next copies only files that the code imports; the model is opened by its path.
  outputFileTracingIncludes: { "/**": ["./models/**"] },
};
