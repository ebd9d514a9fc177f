"""The official Python client at the tools, and calls that are cut off.

usage: client.py walk PROGRAM HOME TOKEN_FILE URL     every tool, over both transports, in every mode
       client.py cut PROGRAM HOME TOPIC N keep|forget  N calls killed under way, then made again

Prints one JSON object a line: what was tried, whether it went well, and why not.
"""

import asyncio
import json
import random
import subprocess
import sys

import httpx2
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client

MODES = ["legacy", "auto", "2026-07-28"]
TOOLS = ["send", "reply", "read_inbox", "wait_for_mail", "list_agents", "list_topics", "list_members", "explain"]


def say(**facts):
    print(json.dumps(facts), flush=True)


async def walk_one(client, prefix, told):
    listed = [tool.name for tool in (await client.list_tools()).tools]
    told("tools/list", listed == TOOLS, f"{listed}")

    async def call(tool, arguments, holds):
        try:
            result = await client.call_tool(tool, arguments)
            facts = result.structured_content or {}
            told(tool, not result.is_error and bool(result.content) and holds(facts), json.dumps(facts))
            return facts
        except Exception as error:  # what the client itself refuses is a finding too
            told(tool, False, repr(error))
            return {}

    id = f"{prefix}-1"
    message = {"to": "me", "body": prefix, "client_message_id": id}
    await call("send", message | {"wait_for": "delivered"}, lambda f: f["rung"] in ("delivered", "notified"))
    await call("send", message, lambda f: f["repeated"])
    mail = await call("wait_for_mail", {"wait_seconds": 20}, lambda f: len(f["messages"]) == 1)
    letter = (mail.get("messages") or [{"id": "none"}])[0]["id"]
    await call("read_inbox", {}, lambda f: f["messages"][0]["body"] == prefix)
    answer = {"message_id": letter, "client_message_id": f"{prefix}-2"}
    await call("reply", answer, lambda f: f["outcome"] == "processed" and not f["repeated"])
    await call("reply", answer, lambda f: f["repeated"])
    await call("list_agents", {}, lambda f: "walker" in [member["name"] for member in f["members"]])
    await call("list_members", {}, lambda f: len(f["members"]) >= 2)
    await call("list_topics", {}, lambda f: isinstance(f["topics"], list))
    await call("explain", {"id": id}, lambda f: f["verdict"] in ("delivered", "notified", "engaged", "processed"))
    await call("explain", {"id": f"{prefix}-never"}, lambda f: f["verdict"] == "never_seen")
    wrong = await client.call_tool("send", message | {"body": "other words"})
    told("send (used id)", wrong.is_error and wrong.structured_content["error"] == "idempotency_key_reused", "")


async def walk(program, home, token_file, url):
    token = open(token_file).read().strip()
    arguments = ["mcp", "--home", home, "--token-file", token_file]
    for mode in MODES:
        for transport in ["stdio", "http"]:
            prefix = f"python-{transport}-{mode}".replace(".", "-")

            def told(what, ok, why):
                say(mode=mode, transport=transport, what=what, ok=bool(ok), why=why)

            try:
                if transport == "stdio":
                    streams = stdio_client(StdioServerParameters(command=program, args=arguments))
                else:
                    headers = {"Authorization": f"Bearer {token}"}
                    streams = streamable_http_client(url, http_client=httpx2.AsyncClient(headers=headers, timeout=60))
                async with Client(streams, mode=mode) as client:
                    await walk_one(client, prefix, told)
            except BaseException as error:
                told("connect", False, repr(error))


def line(id, method, params):
    return json.dumps({"jsonrpc": "2.0", "id": id, "method": method, "params": params}) + "\n"


def server(program, home):
    return subprocess.Popen(
        [program, "mcp", "--home", home], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
    )


def open_conversation(process):
    hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "cut", "version": "1"}}
    process.stdin.write(line(0, "initialize", hello))
    process.stdout.readline()
    process.stdin.write(json.dumps({"jsonrpc": "2.0", "method": "notifications/initialized"}) + "\n")


def cut(program, home, topic, count, memory):
    """The server is killed at a random moment after the call; whoever calls again knows nothing of the first."""
    heard = 0
    rng = random.Random(1)
    for n in range(int(count)):
        id = f"{topic}-{n}"
        message = {"to": f"#{topic}", "body": str(n), "client_message_id": id}
        first = server(program, home)
        open_conversation(first)
        first.stdin.write(line(1, "tools/call", {"name": "send", "arguments": message}))
        try:
            first.wait(rng.random() * 0.02)
        except subprocess.TimeoutExpired:
            pass
        first.kill()
        heard += bool(first.stdout.readline())
        first.wait()
        if memory == "forget":
            message["client_message_id"] = f"{id}-again"
        second = server(program, home)
        open_conversation(second)
        second.stdin.write(line(1, "tools/call", {"name": "send", "arguments": message | {"wait_for": "accepted"}}))
        answer = json.loads(second.stdout.readline())["result"]
        second.stdin.close()
        second.wait()
        reached = answer.get("structuredContent", {}).get("reached")
        say(what=id, ok=reached is True, why=json.dumps(answer.get("structuredContent")))
    say(heard=heard)


if sys.argv[1] == "walk":
    asyncio.run(walk(*sys.argv[2:]))
else:
    cut(*sys.argv[2:])
