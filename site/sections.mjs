/**
 * The pages of the site in the order in which a newcomer reads them. `page` is a file of `docs/` without its extension.
 * A file of `docs/` that is missing here fails the build.
 */
export const SECTIONS = [
  { text: "Start", pages: ["getting-started", "installing", "features", "troubleshooting", "errors"] },
  {
    text: "Models",
    pages: [
      "backends",
      "onnx-engines",
      "decorators",
      "model-configuration",
      "model-repository",
      "python-backend",
      "trees",
      "media",
      "gpu",
    ],
  },
  {
    text: "Scheduling",
    pages: ["choosing", "batching", "instances", "sequences", "ensembles", "streaming", "response-cache"],
  },
  { text: "Text", pages: ["text-generation", "text-generation-decoder", "openai"] },
  {
    text: "Serving",
    pages: ["http", "grpc", "client", "cli", "shared-memory", "request-memory"],
  },
  {
    text: "Operating",
    pages: [
      "operations",
      "security",
      "reliability",
      "metrics",
      "observability",
      "tracing",
      "dashboard",
      "performance-tools",
      "performance",
      "scaling",
      "frontend-threads",
      "remote",
      "cloud",
    ],
  },
  {
    text: "Coming from elsewhere",
    pages: ["from-pytriton", "from-express", "from-model-classes", "compatibility"],
  },
  { text: "Inside", pages: ["architecture", "dependencies"] },
];
