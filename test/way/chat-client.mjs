const [, , url] = process.argv;
const answer = await fetch(url, {
  method: "POST",
  headers: { "content-type": "application/json" },
  body: JSON.stringify({ model: "words", messages: [{ role: "user", content: "Talk." }], stream: true }),
});
process.on("disconnect", () => process.exit(0));
for await (const _ of answer.body) process.send("answered");
