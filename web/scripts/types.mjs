// Types of the broker's HTTP surface, from its own OpenAPI document.
//   node scripts/types.mjs URL     reads URL/openapi.json; writes what the client uses of it, and src/client/types.ts
//   node scripts/types.mjs         writes src/client/types.ts from openapi.json
import { readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const root = join(dirname(fileURLToPath(import.meta.url)), "..");

/** What the client says and hears; whatever these name comes with them. Other parts of the surface may change freely. */
const USED = [
  ...["AcceptAnswer", "BrokerExplained", "ConversationList", "FromSubscriber", "MemberList", "Page", "PostRequest"],
  ...["ReadAnswer", "ReadRequest", "SendRequest", "SessionAnswer", "SessionRequest", "TicketAnswer", "ToSubscriber"],
];

/** The schemas of a document that the client uses, by name. */
export function used(document) {
  const { schemas } = document.components;
  const names = new Set();
  const wanted = USED.filter((name) => schemas[name]);
  while (wanted.length > 0) {
    const name = wanted.pop();
    if (names.has(name)) continue;
    names.add(name);
    for (const [, other] of JSON.stringify(schemas[name]).matchAll(/"#\/components\/schemas\/(\w+)"/g)) wanted.push(other);
  }
  return { components: { schemas: Object.fromEntries([...names].sort().map((name) => [name, schemas[name]])) } };
}

/** The module's text: one exported type for each schema. */
export function types(document) {
  const schemas = Object.entries(document.components.schemas).sort(([a], [b]) => (a < b ? -1 : 1));
  const head = "// Written by scripts/types.mjs from openapi.json. Not edited by hand.\n";
  return head + schemas.map(([name, schema]) => `\n${doc(schema, "")}export type ${name} = ${type(schema, "")};\n`).join("");
}

function type(schema, indent) {
  if (schema === true || schema === undefined) return "unknown";
  if (schema.$ref) return schema.$ref.split("/").at(-1);
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  if (schema.enum) return schema.enum.map((value) => JSON.stringify(value)).join(" | ");
  if (schema.oneOf ?? schema.anyOf) return (schema.oneOf ?? schema.anyOf).map((one) => alternative(one, indent)).join(" | ");
  if (schema.allOf) return schema.allOf.map((one) => type(one, indent)).join(" & ");
  if (Array.isArray(schema.type)) return schema.type.map((one) => type({ ...schema, type: one }, indent)).join(" | ");
  switch (schema.type) {
    case "string":
      return "string";
    case "integer":
    case "number":
      return "number";
    case "boolean":
      return "boolean";
    case "null":
      return "null";
    case "array":
      return `Array<${type(schema.items, indent)}>`;
    default:
      return object(schema, indent);
  }
}

function alternative(schema, indent) {
  const text = type(schema, indent);
  return schema.allOf ? `(${text})` : text;
}

function object(schema, indent) {
  const fields = Object.entries(schema.properties ?? {});
  const inner = `${indent}  `;
  const required = new Set(schema.required ?? []);
  const lines = fields.map(([name, field]) => {
    // What is absent and what is null are written alike: absent.
    const mark = required.has(name) ? "" : "?";
    const also = required.has(name) ? "" : " | undefined";
    return `${doc(field, inner)}${inner}${name}${mark}: ${type(field, inner)}${also};\n`;
  });
  if (lines.length > 0) return `{\n${lines.join("")}${indent}}`;
  return "Record<string, unknown>";
}

function doc(schema, indent) {
  const text = schema.description?.trim();
  if (!text) return "";
  const lines = text.split("\n").map((line) => line.trim());
  if (lines.length === 1) return `${indent}/** ${lines[0]} */\n`;
  return `${indent}/**\n${lines.map((line) => `${indent} * ${line}`.trimEnd()).join("\n")}\n${indent} */\n`;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const [, , url] = process.argv;
  if (url) {
    const response = await fetch(new URL("/openapi.json", url));
    writeFileSync(join(root, "openapi.json"), `${JSON.stringify(used(await response.json()), null, 1)}\n`);
  }
  const document = JSON.parse(readFileSync(join(root, "openapi.json"), "utf8"));
  writeFileSync(join(root, "src/client/types.ts"), types(document));
}
