/**
 * A deep agent talks to two MCP servers at once: tools, resources, an answer of its model for a server, a question of a
 * server to a person. One server is killed in the middle; the agent goes on with the other, and then has it back.
 */
import assert from "node:assert/strict"
import { fileURLToPath } from "node:url"
import { NodeHttpClient, NodeRuntime, NodeServices } from "@effect/platform-node"
import { Console, Effect, FileSystem, Layer, Stream } from "effect"
import { Approval, Tool } from "effect-deepagents"
import * as Agent from "effect-deepagents/Agent"
import { CompositeBackend, MemoryBackend } from "effect-deepagents/backends"
import { DeepAgent } from "effect-deepagents/deep"
import { Mcp, McpBackend, type McpConfig, McpServers } from "effect-deepagents/mcp"
import { TestChatModel } from "effect-deepagents/testing"

/** `npx -y @modelcontextprotocol/…` in your own configuration. */
const server = (name: string, ...args: ReadonlyArray<string>): McpConfig.StdioServer => ({
  type: "stdio",
  command: process.execPath,
  args: [fileURLToPath(import.meta.resolve(`@modelcontextprotocol/${name}/dist/index.js`)), ...args]
})

/** Somebody who agrees to everything, and is called Ada. */
const person = Layer.succeed(Approval.Approvals, {
  decide: (request) =>
    Effect.as(
      Console.log(`? ${request.description}`),
      request.answer === undefined ? Approval.approve(request) : Approval.respond(request, { name: "Ada" })
    )
})

const kill = Tool.make("kill_everything", {
  description: "Kills the server, as a crash would",
  parameters: {},
  execute: () =>
    McpServers.McpServers.use(({ status }) =>
      Effect.map(status, (all) => {
        const pid = all.find(({ name }) => name === "everything")?.pid
        assert(pid !== undefined)
        process.kill(pid, "SIGKILL")
        return "killed"
      })
    )
})

const agent = DeepAgent.make({
  name: "clerk",
  prompt: "You do what you are asked.",
  generalPurpose: false,
  tools: [kill],
  middleware: [Mcp.make()]
})

const call = (name: string, args: { readonly [name: string]: string | number } = {}) =>
  TestChatModel.calls([{ name, arguments: args }])

const script = (folder: string) =>
  TestChatModel.script([
    TestChatModel.calls([
      { name: "everything__get-sum", arguments: { a: 2, b: 3 } },
      { name: "files__write_file", arguments: { path: `${folder}/sum.txt`, content: "5" } }
    ]),
    call("read_mcp_resource", { server: "everything", uri: "demo://resource/dynamic/text/1" }),
    call("ls", { path: "/mcp/everything/demo/resource/static/document" }),
    call("everything__trigger-sampling-request", { prompt: "Say something", maxTokens: 20 }),
    "Something.",
    call("everything__trigger-elicitation-request"),
    call("kill_everything"),
    call("files__read_text_file", { path: `${folder}/sum.txt` }),
    call("everything__echo", { message: "back again" }),
    "All done."
  ])

const program = Effect.gen(function* () {
  const files = yield* FileSystem.FileSystem
  const folder = yield* files.makeTempDirectoryScoped()
  const servers = McpServers.layer(
    { everything: { ...server("server-everything"), sampling: "ask" }, files: server("server-filesystem") },
    // The server of files touches nothing else.
    { roots: [folder] }
  )
  const backend = CompositeBackend.layer({ default: MemoryBackend.layer(), routes: { "/mcp/": McpBackend.layer } })
  const seen: Array<string> = []
  yield* Agent.stream(agent, "Show what you can do").pipe(
    Stream.runForEach((event) => {
      if (event._tag !== "ToolCompleted" && event._tag !== "ToolFailed") return Effect.void
      seen.push(event.text)
      return Console.log(`${event.toolName}: ${event.text.replaceAll(/\s+/g, " ").slice(0, 100)}`)
    }),
    Effect.provide([backend.pipe(Layer.provideMerge(servers)), person, script(folder)])
  )
  assert.equal(yield* files.readFileString(`${folder}/sum.txt`), "5")
  for (const part of ["sum of 2 and 3 is 5", "plaintext resource", "Something.", "Ada", "back again"]) {
    assert(
      seen.some((text) => text.includes(part)),
      part
    )
  }
})

NodeRuntime.runMain(
  program.pipe(
    Effect.scoped,
    Effect.provide([NodeServices.layer, NodeHttpClient.layerUndici]),
    Effect.timeout("60 seconds")
  )
)
