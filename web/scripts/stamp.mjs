// The list `build.sha256`: what the committed build was made from, and what it consists of.
//   node scripts/stamp.mjs write   after a build
//   node scripts/stamp.mjs check   ends with 1 and the names of files that differ
// The form is that of sha256sum, so that a checkout without Node can be checked too.
import { createHash } from "node:crypto";
import { readFileSync, readdirSync, statSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const root = join(dirname(fileURLToPath(import.meta.url)), "..");
const SOURCES = ["index.html", "package.json", "package-lock.json", "tsconfig.json", "vite.config.ts", "public", "src"];
const list = "build.sha256";

function files(path) {
  if (!statSync(join(root, path)).isDirectory()) return [path];
  return readdirSync(join(root, path)).flatMap((name) => files(`${path}/${name}`));
}

function stamp() {
  // Tests of the modules are no part of the page.
  const names = [...SOURCES.flatMap(files), ...files("dist")].filter((name) => !name.endsWith(".test.ts"));
  const line = (name) => `${createHash("sha256").update(readFileSync(join(root, name))).digest("hex")}  ${name}\n`;
  return names.sort().map(line).join("");
}

if (process.argv[2] === "write") {
  writeFileSync(join(root, list), stamp());
} else {
  const kept = new Set(readFileSync(join(root, list), "utf8").split("\n"));
  const here = new Set(stamp().split("\n"));
  const differing = [...kept, ...here].filter((line) => kept.has(line) !== here.has(line));
  if (differing.length > 0) {
    console.error(`the committed build is stale; npm run build writes it:\n${[...new Set(differing)].join("\n")}`);
    process.exit(1);
  }
}
