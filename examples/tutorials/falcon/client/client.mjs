/* Sends a prompt to falcon7b and prints its answer. It needs Node.js alone. */

const url = process.env.TRITON_URL ?? "http://localhost:8000";
const prompt = process.argv[2] ?? "How can you be";

const response = await fetch(`${url}/v2/models/falcon7b/infer`, {
  method: "POST",
  headers: { "Content-Type": "application/json" },
  body: JSON.stringify({ inputs: [{ name: "text_input", datatype: "BYTES", shape: [1], data: [prompt] }] }),
});
const { outputs, error } = await response.json();
if (error !== undefined) throw new Error(`falcon7b answered with status ${response.status}: ${error}`);
console.log(outputs.find(({ name }) => name === "text_output").data[0]);
