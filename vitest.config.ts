import { defineConfig } from "vitest/config";

/** The long layer, which `npm run test:all` runs too. */
const LONG = [
  // Replays of recordings.
  "test/golden/**/*.test.ts",
  "test/conformance/{onnx-operators,onnx-data,onnx-engines,frontend-threads}.test.ts",
  // Frames of HTTP/2 that a Python program writes.
  "test/conformance/http2-frames.test.ts",
  // Random, hostile and large loads.
  "test/simulation/*-load.test.ts",
  "packages/trees/test/**/*.fuzz.test.ts",
  "packages/media/test/**/*.fuzz.test.ts",
  "packages/tools/test/analyze/search/*.{exhaustive,drift}.test.ts",
  "test/stress/**/*.test.ts",
  "test/security/{http2-floods,slow-clients,many-connections,overload}.test.ts",
  "test/fuzz/random-inputs.test.ts",
  "packages/core/test/scheduler/priority-queue.mass-cancellation.test.ts",
  "packages/http/test/bad-inputs/{framing,encodings}.test.ts",
  "packages/grpc/test/server.bad-input.test.ts",
  "packages/grpc/test/transport/http2/connection.test.ts",
  "packages/core/test/scheduler/sequence-batch/implicit-states.test.ts",
  "packages/client/test/http/inference-server-client.data-types.test.ts",
  "test/core/request-settlement.test.ts",
  "test/e2e/request-size-limits.test.ts",
  "packages/text-generation/test/decoder/text-generation.{mixed-load,bad-input}.test.ts",
  "packages/grpc/test/handlers/stream-infer.back-pressure.test.ts",
  "packages/core/test/config/prototxt/write-prototxt.test.ts",
  "packages/tools/test/analyze/search/quick-search.test.ts",
  "test/fuzz/fuzzer.test.ts",
  // Versions that change while requests of all transports run.
  "test/e2e/{reload-under-load,reload-with-other-shapes}.test.ts",
  "test/core/model-repository/half-written-models.test.ts",
  // Models in processes of their own; processes and threads that crash, hang or are killed.
  "test/core/instance-faults.test.ts",
  "test/core/worker-crashes.test.ts",
  "test/core/process-lifetime.test.ts",
  "test/core/native-calls-in-threads.test.ts",
  "test/core/onnx-engine.faults.test.ts",
  "test/core/python-models/python-{backends,batches-ahead,faults,process-lifetime,model-calls,readiness,interface,tensor-memory}.test.ts",
  "test/core/python-models/{bound-python-models,execution-environments,torch-models}.test.ts",
  "test/core/{process,recycled}-instances.test.ts",
  "test/core/model-repository/javascript-{models,model-control}.test.ts",
  // A browser.
  "test/dashboard/browser{,-operations}.test.ts",
  "test/examples/{chat-page,browser-and-edge}.browser.test.ts",
  // The documentation site, built and read in a browser.
  "test/site/*.test.ts",
  // Frameworks and servers of others.
  "test/core/tensorflow.test.ts",
  "test/core/cloud-repository/s3-*.test.ts",
  "packages/core/test/repository/cloud/cloud-source.google-and-azure.test.ts",
  "test/e2e/nest-routes.test.ts",
  "test/examples/{backend-models,mounted-servers,pipelines}.test.ts",
  "test/e2e/quickstart-server.test.ts",
  "test/examples/text-{engines,models}.test.ts",
  // Examples that run as programs of their own.
  "test/examples/network-features.test.ts",
  "test/examples/{gpus,monitoring,torchscript}.test.ts",
  // Networks of real size.
  "test/examples/{voice-activity,text-in-pictures,people-in-photographs}.test.ts",
  "test/docs/getting-started.test.ts",
  // The code of all guides; the README is tested with the behaviours.
  "test/docs/code-snippets.guides.test.ts",
  // The pictures of the documents, drawn again.
  "test/docs/pictures.test.ts",
  "test/openai/ai-sdk.test.ts",
  // The checks of this repository, on repositories with mistakes.
  "test/repository/import-rules.test.ts",
  // The schema of GitHub from npm.
  "test/repository/workflows.schema.test.ts",
  // Repositories of git.
  "test/repository/release-site.test.ts",
  // Runs of the compiler.
  "test/types/forgotten-wrapper.test.ts",
  "test/core/classic-decorators.test.ts",
  // Benchmarks that run once.
  "test/bench/compare.test.ts",
  // The codec, generated again.
  "packages/grpc-messages/test/generated-codec-is-current.test.ts",
  // Declarations of all packages.
  "test/package/api-reports.test.ts",
  // Projects that install the packages, by several package managers, and bundle them.
  "test/package/{published,installed}-packages.test.ts",
  "test/package/{package-managers,tutorial}.test.ts",
  "packages/cli/test/commands/init-command.templates.test.ts",
  "test/package/typescript-versions.test.ts",
  "test/package/bundlers.test.ts",
  // Three servers behind proxies, and servers with a Redis.
  "test/deploy/{proxies,shared-cache}.test.ts",
  "test/examples/replicas-behind-a-proxy.test.ts",
  // Servers that die, come back and change their addresses.
  "packages/client/test/remote/remote.health.test.ts",
  "packages/client/test/servers/several-servers.test.ts",
  "test/e2e/killed-replicas.test.ts",
  // Servers on full disks, without free descriptors, and suspended; servers under load and faults for two minutes.
  "test/recovery/*.test.ts",
  "test/chaos/chaos-run.test.ts",
  // Schemas of Kubernetes from npm, and the Helm chart through Go.
  "test/deploy/schemas.test.ts",
  // Commands against several servers, with TLS, streams of tokens and sequences.
  "packages/tools/test/perf/perf.{servers,targets,openai,periodic,options,foreign,lost-server}.test.ts",
  "packages/tools/test/load/load-generator.test.ts",
  // Servers with frontend threads: streams, closing under requests, threads that die.
  "test/frontend-threads/*.test.ts",
  // Searches that measure ONNX models and models in processes.
  "packages/tools/test/analyze/real/measured-variants.test.ts",
  // Commands that are interrupted.
  "packages/tools/test/lifetime/interrupted-commands.test.ts",
];

export default defineConfig({
  test: {
    globalSetup: "test/support/bundle-packages.ts",
    // Worker threads of ONNX Runtime and real sockets want a process of their own for each file.
    pool: "forks",
    // Much of the time is spent on waiting for processes and sockets.
    maxWorkers: "100%",
    // Limits end a test that hangs. A busy machine needs far less, so load alone fails no test. They stay below the
    // server's keep-alive timeout (72 s), so a `close` that waits for an idle connection still fails its test.
    testTimeout: 60_000,
    hookTimeout: 60_000,
    expect: { poll: { timeout: 50_000 } },
    reporters: ["default", "./test/support/skipped-reporter.ts"],
    projects: [
      {
        extends: true,
        test: {
          name: "behaviours",
          include: ["packages/*/test/**/*.test.ts", "test/**/*.test.ts"],
          exclude: [...LONG, "**/node_modules/**"],
        },
      },
      { extends: true, test: { name: "long", include: [...LONG] } },
    ],
  },
});
