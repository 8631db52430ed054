import { OpenModels } from "./open-models.js";

/**
 * Program 18: text to answers, where a client sends text only. A classifier, a model that answers questions, and a
 * zero-shot classifier, each behind a step that makes tokens.
 */
export async function zeroShot(): Promise<void> {
  await using models = await OpenModels.serve(["sentiment", "answer", "zero_shot"]);
  const { client } = models;

  const texts = [
    "The soup was really delightful.",
    "I never liked this film.",
    "The hotel was ugly but the service was great!",
  ];
  const sentiment = await client.infer("sentiment", {
    inputs: { text: { datatype: "BYTES", shape: [texts.length, 1], data: texts } },
    outputs: [{ name: "sentiment", classes: 1 }],
  });
  for (const [i, found] of sentiment.strings("sentiment").entries()) {
    console.log(`${found.split(":")[2]}: ${texts[i]}`);
  }

  const context =
    "Clara works as a pilot. Felix likes cheese. Clara has a grey parrot. Felix lives in Vienna.";
  const questions = ["Where does Felix live?", "What animal does Clara have?"];
  for (const question of questions) {
    const found = await client.infer("answer", {
      inputs: {
        question: { datatype: "BYTES", shape: [1, 1], data: [question] },
        context: { datatype: "BYTES", shape: [1, 1], data: [context] },
      },
    });
    console.log(`${question} ${found.strings("answer")[0]}`);
  }

  // The last two labels were never labels when the model was trained.
  const labels = ["sport", "cooking", "weather", "spice", "fog"];
  for (const sequence of [
    "The chef saw pepper and flour in the kitchen.",
    "Yesterday we had rain, thunder and a cold wind.",
  ]) {
    const zeroShot = await client.infer("zero_shot", {
      inputs: {
        sequence: { datatype: "BYTES", shape: [1], data: [sequence] },
        labels: { datatype: "BYTES", shape: [labels.length], data: labels },
      },
    });
    const scores = zeroShot.elements("scores", "FP32");
    const order = labels.map((label, i) => ({ label, score: scores[i]! })).sort((a, b) => b.score - a.score);
    console.log(`${sequence} ${order.map(({ label, score }) => `${label} ${score.toFixed(1)}`).join(", ")}`);
  }

  await client
    .infer("zero_shot", {
      inputs: {
        sequence: { datatype: "BYTES", shape: [1], data: ["Rain."] },
        labels: { datatype: "BYTES", shape: [0], data: [] },
      },
    })
    .catch((error: Error) => console.log(error.message));
}
