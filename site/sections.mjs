/**
 * The pages of the site in the order in which a newcomer reads them. `page` is a file of `docs/` without its extension.
 * A file of `docs/` that is missing here fails the build.
 */
export const SECTIONS = [
  {
    text: "Start",
    pages: ["getting-started", "installing", "testing", "features", "troubleshooting", "errors"],
  },
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
      "speech",
      "tokenizer",
      "gpu",
    ],
  },
  {
    text: "Scheduling",
    pages: [
      "choosing",
      "batching",
      "deadlines",
      "instances",
      "sequences",
      "ensembles",
      "streaming",
      "response-cache",
    ],
  },
  { text: "Pages and the edge", pages: ["web"] },
  { text: "Text", pages: ["text-generation", "text-generation-decoder", "openai", "agents"] },
  {
    text: "Serving",
    pages: ["http", "grpc", "client", "types", "cli", "extensions", "shared-memory", "request-memory"],
  },
  {
    text: "Operating",
    pages: [
      "operations",
      "security",
      "reliability",
      "rollout",
      "metrics",
      "observability",
      "tracing",
      "dashboard",
      "optimize",
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
    pages: ["tutorials", "from-pytriton", "from-express", "from-model-classes", "compatibility"],
  },
  { text: "Inside", pages: ["architecture", "dependencies"] },
];

/** What the first page shows of the library, each with the page to read about it. */
export const FEATURES = [
  {
    title: "Calls in process",
    details: "Call a model as a function, with types from its tensors and without networking.",
    link: "/getting-started",
  },
  {
    title: "Dynamic batching",
    details: "Concurrent requests run together, within the time that you give them.",
    link: "/batching",
  },
  {
    title: "Triton's protocol",
    details: "Open the same model over HTTP and gRPC. Triton's clients work unmodified.",
    link: "/compatibility",
  },
  {
    title: "Model files",
    details:
      "ONNX, TensorFlow.js, tree ensembles, Python models and text generation, in worker threads and processes.",
    link: "/backends",
  },
  {
    title: "Models in a repository",
    details: "Versions, configurations, polling and loading on request, from a folder or a bucket.",
    link: "/model-repository",
  },
  {
    title: "In production",
    details: "Probes, a drain, metrics, traces, alerts, and files for Kubernetes.",
    link: "/operations",
  },
];
