// node chat.ts KEY TEXT: goes on with your conversation KEY, prints the answer while it comes.
// Types are inferred throughout: before Node 22.18, which runs TypeScript, name it chat.mjs.
const [key, text] = process.argv.slice(2);
const response = await fetch(process.env.REJOIN_HUB + "/api/send", {
  method: "POST",
  headers: { authorization: "Bearer " + process.env.REJOIN_TOKEN,
    "content-type": "application/json", accept: "text/event-stream" },
  body: JSON.stringify({ key, text }),
});
if (!response.ok || !response.body) throw new Error((await response.json()).detail);
let rest = "";
for await (const part of response.body.pipeThrough(new TextDecoderStream())) {
  const lines = (rest + part).split("\n");
  rest = lines.pop() ?? "";
  for (const line of lines.filter((line) => line.startsWith("data:"))) {
    const event = JSON.parse(line.slice(5));
    if (event.type === "text") console.log(event.text);
    if (event.type === "turn.ended") console.error(event.summary);
    if (event.type === "turn.ended") process.exitCode = event.status === "succeeded" ? 0 : 1;
  }
}
