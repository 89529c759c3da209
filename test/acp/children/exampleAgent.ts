/** An agent by the documents of the protocol's package, which leaves its own examples out. Its sessions are files of a folder, so that another process loads them. The words of a prompt choose its actions. */
import { execFile, spawn } from "node:child_process"
import { appendFileSync, existsSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { Writable } from "node:stream"
import * as acp from "@agentclientprotocol/sdk"

const folder = process.argv[2] ?? "."
const fileOf = (sessionId: string) => join(folder, `${sessionId}.log`)
const folders = new Map<string, string>()
const cancelled = new Map<string, () => void>()

const permission = async (client: acp.AgentContext, sessionId: string, toolCall: acp.ToolCallUpdate) => {
  const { outcome } = await client.request("session/request_permission", {
    sessionId,
    toolCall,
    options: [
      { optionId: "yes", name: "Yes", kind: "allow_once" },
      { optionId: "no", name: "No", kind: "reject_once" }
    ]
  })
  return outcome.outcome === "selected" && outcome.optionId === "yes"
}

type Act = (client: acp.AgentContext, sessionId: string, argument: string) => Promise<string>

const tell = (client: acp.AgentContext, sessionId: string, update: acp.SessionUpdate) =>
  client.notify("session/update", { sessionId, update })

const acts: { readonly [word: string]: Act } = {
  write: async (client, sessionId, path) => {
    const at = join(folders.get(sessionId) ?? "", path)
    const diff = { type: "diff", path: at, newText: "new" } as const
    await tell(client, sessionId, {
      sessionUpdate: "tool_call",
      toolCallId: "w",
      title: `write ${path}`,
      kind: "edit",
      status: "pending",
      content: [diff]
    })
    const isAllowed = await permission(client, sessionId, { toolCallId: "w", title: `write ${path}`, content: [diff] })
    if (isAllowed) await client.request("fs/write_text_file", { sessionId, path: at, content: "new" })
    await tell(client, sessionId, {
      sessionUpdate: "tool_call_update",
      toolCallId: "w",
      status: isAllowed ? "completed" : "failed"
    })
    return isAllowed ? "written" : "not allowed"
  },
  sneak: async (client, sessionId, path) => {
    const at = join(folders.get(sessionId) ?? "", path)
    return client.request("fs/write_text_file", { sessionId, path: at, content: "new" }).then(
      () => "written",
      () => "refused"
    )
  },
  read: async (client, sessionId, path) => {
    const at = join(folders.get(sessionId) ?? "", path)
    return client.request("fs/read_text_file", { sessionId, path: at }).then(
      ({ content }) => content,
      () => "refused"
    )
  },
  run: async (client, sessionId, command) => {
    const terminal = await client.createTerminal({ sessionId, command })
    const { exitCode } = await terminal.waitForExit()
    const { output } = await terminal.currentOutput()
    await terminal.release()
    return `${output}[${exitCode}]`
  },
  plan: async (client, sessionId) => {
    await tell(client, sessionId, {
      sessionUpdate: "plan",
      entries: [{ content: "look", priority: "high", status: "in_progress" }]
    })
    return "planned"
  },
  spend: async (client, sessionId) => {
    for (let cost = 0.1; ; cost += 0.1) {
      await tell(client, sessionId, {
        sessionUpdate: "usage_update",
        used: 1_000,
        size: 10_000,
        cost: { amount: cost, currency: "USD" }
      })
      const isOver = await new Promise<boolean>((resolve) => {
        cancelled.set(sessionId, () => resolve(true))
        setTimeout(() => resolve(false), 20)
      })
      if (isOver) return "stopped"
    }
  },
  hang: async (client, sessionId) => {
    // A process of its own, which has to end with it.
    const child = spawn("sleep", ["1000"])
    writeFileSync(join(folder, "pids"), `${process.pid} ${child.pid}`)
    await tell(client, sessionId, {
      sessionUpdate: "agent_message_chunk",
      content: { type: "text", text: "I hang" }
    })
    await new Promise<void>((resolve) => cancelled.set(sessionId, resolve))
    return "no more"
  },
  self: (_client, _sessionId, command) =>
    new Promise((resolve) => execFile("sh", ["-c", command], (_error, output) => resolve(output))),
  crash: () => {
    process.stderr.write("the disk is full\n")
    process.exit(3)
  }
}

const input = new ReadableStream<Uint8Array>({
  start: (controller) => {
    process.stdin.on("data", (chunk: Buffer) => controller.enqueue(chunk))
    process.stdin.on("end", () => controller.close())
  }
})

const connection = acp
  .agent({ name: "example" })
  .onRequest("initialize", () => ({
    protocolVersion: acp.PROTOCOL_VERSION,
    agentCapabilities: { loadSession: true },
    agentInfo: { name: "example", version: "1.0.0" },
    authMethods: []
  }))
  .onRequest("session/new", ({ params }) => {
    const sessionId = `example-${process.pid}`
    folders.set(sessionId, params.cwd)
    writeFileSync(fileOf(sessionId), "")
    return { sessionId }
  })
  .onRequest("session/load", async ({ client, params: { cwd, sessionId } }) => {
    if (!existsSync(fileOf(sessionId))) throw acp.RequestError.sessionNotFound(sessionId)
    folders.set(sessionId, cwd)
    for (const line of readFileSync(fileOf(sessionId), "utf8")
      .split("\n")
      .filter((one) => one !== "")) {
      await tell(client, sessionId, {
        sessionUpdate: "agent_message_chunk",
        content: { type: "text", text: `(said before: ${line})` }
      })
    }
    return {}
  })
  .onRequest("session/prompt", async ({ client, params: { prompt, sessionId } }) => {
    const [first] = prompt
    const words = first?.type === "text" ? first.text : ""
    appendFileSync(fileOf(sessionId), `${words.split("\n")[0]}\n`)
    const [begun = ""] = readFileSync(fileOf(sessionId), "utf8").split("\n")
    // A write that was cut off begins again.
    const task = words.startsWith("You were cut off") && begun.startsWith("write ") ? begun : words
    const [, word = "", argument = ""] = /^(\w+)(?: ([^]*))?$/.exec(task) ?? []
    const act = Object.hasOwn(acts, word) ? acts[word] : undefined
    const said = act === undefined ? `You said: ${words}` : await act(client, sessionId, argument)
    for (const piece of said.match(/[^]{1,8}/g) ?? []) {
      await tell(client, sessionId, { sessionUpdate: "agent_message_chunk", content: { type: "text", text: piece } })
    }
    return { stopReason: said === "no more" || said === "stopped" ? "cancelled" : "end_turn" }
  })
  .onNotification("session/cancel", ({ params }) => cancelled.get(params.sessionId)?.())
  .connect(acp.ndJsonStream(Writable.toWeb(process.stdout), input))

void connection.closed.then(() => process.exit(0))
