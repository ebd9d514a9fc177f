// A client that cannot be told a token speaks to this address, which adds it. Its own name becomes the door's;
// every other Host and every Origin goes through as it came, so that the door's guards are the ones that judge.
// Usage: node bearer.mjs DOOR_PORT TOKEN_FILE; prints its own port.
import http from "node:http";
import { readFileSync } from "node:fs";

const [door, file] = process.argv.slice(2);
const token = readFileSync(file, "utf8").trim();

const server = http.createServer((request, response) => {
  const headers = { ...request.headers, authorization: `Bearer ${token}` };
  const own = server.address().port;
  if ([`127.0.0.1:${own}`, `localhost:${own}`].includes(headers.host)) headers.host = `127.0.0.1:${door}`;
  const { method, url: path } = request;
  const onward = http.request({ host: "127.0.0.1", port: door, method, path, headers }, (answer) => {
    response.writeHead(answer.statusCode, answer.headers);
    answer.pipe(response);
  });
  onward.on("error", () => response.destroy());
  response.on("close", () => onward.destroy());
  request.pipe(onward);
});
server.listen(0, "127.0.0.1", () => console.log(server.address().port));
