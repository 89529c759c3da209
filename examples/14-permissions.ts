/**
 * Which files an agent may touch: rules in front of the backend, so nothing goes around them. One refuses, one asks; who
 * is asked sees what would be done.
 */
import assert from "node:assert/strict"
import { NodeRuntime } from "@effect/platform-node"
import { Console, Effect, Layer } from "effect"
import { Agent, Approval, Backend, Message } from "effect-deepagents"
import { FileTools, MemoryBackend, Permissions } from "effect-deepagents/backends"
import { TestChatModel } from "effect-deepagents/testing"

// The first rule that covers a path decides. Dot files are files like any others.
const files = Permissions.layer({
  rules: [
    { operations: ["read", "write"], paths: ["/.env*", "/secrets"], ruling: "refuse" },
    { operations: ["write"], paths: ["/config/**"], ruling: "ask" },
    { operations: ["read", "write"], paths: ["/**"], ruling: "allow" }
  ],
  default: "refuse"
}).pipe(
  Layer.provide(
    MemoryBackend.layer({ files: { "/.env": "KEY=abc\n", "/config/app.json": '{"port":1}\n', "/a.md": "" } })
  )
)

// A person, in a real program. Nobody is asked about what is allowed or refused.
const person = Layer.succeed(Approval.Approvals, {
  decide: (request) =>
    Effect.gen(function* () {
      const isHarmless = JSON.stringify(request.arguments["replacements"]).includes("8080")
      yield* Console.log(`asked     ${request.description}: ${isHarmless ? "yes" : "no"}`)
      return isHarmless
        ? Approval.approve(request)
        : Approval.reject(request, "only the port may be changed, and only to 8080")
    })
})

const agent = Agent.make({ name: "operator", prompt: "You run the service.", tools: FileTools.make() })

const edit = (old_string: string, new_string: string) => ({
  name: "edit_file",
  arguments: { file_path: "/config/app.json", old_string, new_string }
})

const model = TestChatModel.script([
  TestChatModel.calls([
    { name: "ls" },
    { name: "read_file", arguments: { file_path: "/.env" } },
    { name: "read_file", arguments: { file_path: "/config/app.json" } }
  ]),
  TestChatModel.calls([edit('"port":1', '"port":80')]),
  TestChatModel.calls([edit('"port":1', '"port":8080')]),
  "The port is 8080."
])

const program = Effect.gen(function* () {
  const { messages } = yield* Agent.run(agent, "Set the port.")
  const results = messages.filter((message) => message.role === "tool")
  for (const result of results) {
    yield* Console.log(`${result.isError ? "error" : "ok   "}     ${Message.text(result).replaceAll("\n", " | ")}`)
  }
  assert.deepEqual(
    results.map((result) => result.isError),
    [false, true, false, true, false]
  )
  assert.doesNotMatch(Message.text(results[0] ?? Message.human("")), /\.env/)
  const config = yield* Backend.Backend.use((backend) => backend.read("/config/app.json"))
  assert.equal(config.kind === "text" && config.text, '{"port":8080}')
})

NodeRuntime.runMain(program.pipe(Effect.provide([files, model, person])))
