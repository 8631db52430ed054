import { onnxruntime } from "@tritonjs/backends/onnxruntime";
import * as grpcClient from "@tritonjs/client/grpc";
import * as httpClient from "@tritonjs/client/http";
import { createClient } from "@tritonjs/client/http";
import { batch, groupByValues, sample, Triton } from "@tritonjs/core";
import type { BytesArray } from "@tritonjs/core/types";
import { grpc } from "@tritonjs/grpc";
import { http } from "@tritonjs/http";
import { repository as withRepository } from "@tritonjs/repository";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { identityOnnx, withMetadata } from "../support/onnx-models.js";
import { RepositoryOnDisk } from "../support/repository-on-disk.js";

describe("text and json", () => {
  interface Question {
    readonly text: string;
    readonly times: number;
  }

  const triton = new Triton();

  /** Repeats texts. Questions come as JSON, and answers go as text and as JSON. */
  const chat = triton.bind({
    modelName: "chat",
    inputs: [{ name: "question", dtype: "BYTES", shape: [1] }],
    outputs: [
      { name: "answer", dtype: "BYTES", shape: [1] },
      { name: "details", dtype: "BYTES", shape: [1] },
    ],
    inferFunc: batch(({ question }) => {
      const questions = question.jsonValues<Question>();
      return {
        answer: questions.map(({ text, times }) => text.repeat(times)),
        details: questions.map(({ times }) => ({ times, rows: questions.length })),
      };
    }),
  });

  const shout = triton.bind({
    modelName: "shout",
    inputs: [{ name: "text", dtype: "BYTES", shape: [1] }],
    outputs: [{ name: "loud", dtype: "BYTES", shape: [1] }],
    inferFunc: sample(({ text }) => ({ loud: `${text.text().toUpperCase()}!` })),
  });

  let httpUrl: string;

  let grpcUrl: string;

  beforeAll(async () => {
    const { addresses } = await triton.serve({ frontends: [http({ port: 0 }), grpc({ port: 0 })] });
    httpUrl = addresses.http!.url;
    grpcUrl = addresses.grpc!.url;
  });

  afterAll(() => triton.close());

  const question = { text: "hé", times: 2 };

  describe("texts and JSON of BYTES", () => {
    it("pass as strings and plain objects in process", async () => {
      const { answer, details } = await chat.inferSample({ question });
      expect([answer.text(), details.json()]).toEqual(["héhé", { times: 2, rows: 1 }]);
      const rows = await chat.inferBatch({ question: [question, JSON.stringify({ text: "a", times: 1 })] });
      expect([rows.answer.shape, rows.answer.strings()]).toEqual([
        [2, 1],
        ["héhé", "a"],
      ]);
      expect(rows.details.jsonValues<{ rows: number }>().map((one) => one.rows)).toEqual([2, 2]);
      expect(rows.details.pick(1, null).json()).toEqual({ times: 1, rows: 2 });
      expect((await shout.infer({ text: "hi" })).loud.text()).toBe("HI!");
      const byName = await triton.infer("shout", { text: "hi" });
      expect((byName.loud as BytesArray).text()).toBe("HI!");
    });

    it("pass as strings and plain objects through the clients of a model", async () => {
      for (const client of [
        new httpClient.ModelClient(httpUrl, "chat"),
        new grpcClient.ModelClient(grpcUrl, "chat"),
      ]) {
        await using model = client;
        const { answer, details } = (await model.inferSample({ question })) as Record<string, BytesArray>;
        expect([answer!.text(), details!.json()]).toEqual(["héhé", { times: 2, rows: 1 }]);
        const rows = (await model.inferBatch({ question: [question, question] })) as Record<
          string,
          BytesArray
        >;
        expect(rows.answer!.strings()).toEqual(["héhé", "héhé"]);
      }
    });

    it("pass as strings and plain objects through the clients of a server", async () => {
      await using overHttp = new httpClient.InferenceServerClient(httpUrl);
      await using overGrpc = new grpcClient.InferenceServerClient(grpcUrl);
      for (const client of [overHttp, overGrpc]) {
        const result = await client.infer("chat", {
          inputs: { question: { datatype: "BYTES", shape: [1, 1], data: question } },
        });
        expect([result.text("answer"), result.json("details")]).toEqual(["héhé", { times: 2, rows: 1 }]);
        const two = await client.infer("chat", { inputs: { question: [[question], [question]] } });
        expect(two.strings("answer")).toEqual(["héhé", "héhé"]);
        expect(two.text("answer", 1, 0)).toBe("héhé");
        expect(two.array("details", "BYTES").jsonValues()).toHaveLength(2);
        const loud = await client.infer("shout", { inputs: { text: ["hi"] } });
        expect(loud.text("loud")).toBe("HI!");
        expect(() => loud.json("loud")).toThrow(
          expect.objectContaining({
            code: "INTERNAL",
            message: "output 'loud' of model 'shout': expected JSON, got 'HI!'",
          }),
        );
      }
    });

    it("stay BYTES in the metadata of the protocol", async () => {
      await using client = new httpClient.InferenceServerClient(httpUrl);
      const { inputs, outputs } = await client.getModelMetadata("chat");
      expect([...inputs, ...outputs!].map(({ datatype }) => datatype)).toEqual(["BYTES", "BYTES", "BYTES"]);
    });

    it("refuse an input that is not JSON as a mistake of the client, on every transport", async () => {
      const message = expect.stringContaining(
        "input 'question' of model 'chat', element [0, 0]: expected JSON, got 'what?'",
      );
      await expect(chat.inferSample({ question: "what?" })).rejects.toMatchObject({
        code: "INVALID_ARG",
        message,
      });
      for (const client of [
        new httpClient.ModelClient(httpUrl, "chat"),
        new grpcClient.ModelClient(grpcUrl, "chat"),
      ]) {
        await using model = client;
        await expect(model.inferSample({ question: "what?" })).rejects.toMatchObject({
          code: "INVALID_ARG",
          message,
        });
      }
    });

    it("are read in the groups of a decorator too", async () => {
      await using server = new Triton();
      const model = server.bind({
        modelName: "grouped",
        inputs: [{ name: "word", dtype: "BYTES", shape: [1] }],
        outputs: [{ name: "group", dtype: "BYTES", shape: [1] }],
        inferFunc: batch(
          groupByValues("word")(({ word }) => ({ group: word.strings().map((text) => [text]) })),
        ),
      });
      const { group } = await model.inferBatch({ word: ["b", "a", "b"] });
      expect(group.strings()).toEqual(["b", "a", "b"]);
    });

    it("name the element that a callback cannot convert", async () => {
      await using server = new Triton();
      const model = server.bind({
        modelName: "wrong",
        inputs: [{ name: "x", dtype: "BYTES", shape: [1] }],
        outputs: [{ name: "y", dtype: "BYTES", shape: [1] }],
        inferFunc: batch(() => ({ y: "one text for all rows" })),
      });
      await expect(model.inferSample({ x: "a" })).rejects.toMatchObject({
        code: "INTERNAL",
        message: expect.stringContaining("output 'y'"),
      });
    });
  });
});

const model = withMetadata(identityOnnx("FLOAT", ["batch", 2]), { names: "{0: 'cat', 1: 'dog'}" });

describe("class names of files", () => {
  it("classification names the classes of an ONNX file, unless bind or a label file names them", async () => {
    await using repository = await RepositoryOnDisk.create({
      "stored/1/model.onnx": model,
      "written/1/model.onnx": model,
      "written/labels.txt": "no\nyes\n",
      "written/config.pbtxt": `max_batch_size: 4 input { name: "x" data_type: TYPE_FP32 dims: 2 }
      output { name: "y" data_type: TYPE_FP32 dims: 2 label_filename: "labels.txt" }`,
    });
    await using triton = new Triton({ extensions: [withRepository({ modelRepository: repository.path })] });
    triton.bind({ modelName: "bound", inferFunc: onnxruntime({ model }) });
    triton.bind({
      modelName: "given",
      inputs: [{ name: "x", dtype: "FP32", shape: [2] }],
      outputs: [{ name: "y", dtype: "FP32", shape: [2], labels: ["no", "yes"] }],
      inferFunc: onnxruntime({ model }),
    });
    const { addresses } = await triton.serve({ frontends: [http({ port: 0 })] });
    await using client = createClient(addresses.http!.url);
    const labels = ["bound", "given", "stored", "written"].map(async (name) => {
      const [best] = await client.model(name).classify("y", { x: [1, 2] });
      return best!.label;
    });
    expect(await Promise.all(labels)).toEqual(["dog", "yes", "dog", "yes"]);
  });
});
