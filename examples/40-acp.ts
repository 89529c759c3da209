/**
 * An agent that has another program code for it, by the Agent Client Protocol: within 0.50 $, and with one question to a
 * person, which waits in the inbox while both programs are gone.
 */
import assert from "node:assert/strict"
import { mkdtempSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { NodeServices } from "@effect/platform-node"
import { Console, Effect, Layer } from "effect"
import { Agent, Approval, Backend } from "effect-deepagents"
import { AcpAgent } from "effect-deepagents/acp"
import { MemoryBackend } from "effect-deepagents/backends"
import { AskUser, Budget, Subagents } from "effect-deepagents/middleware"
import { Inbox } from "effect-deepagents/rules"
import { MemorySessions, SessionStore } from "effect-deepagents/sessions"
import { TestChatModel } from "effect-deepagents/testing"

const folder = mkdtempSync(join(tmpdir(), "deepagents-example-"))

// In your own program: command: ["npx", "-y", "@zed-industries/claude-code-acp"]
const coder = AcpAgent.make({
  name: "coder",
  description: "Writes code",
  command: [process.execPath, ...process.execArgv, join(import.meta.dirname, "acp/coder.ts"), folder],
  // Its process reaches the working folder, and these.
  isolation: { readable: [join(import.meta.dirname, "..")], writable: [folder] }
})

const lead = Agent.make({
  name: "lead",
  prompt: "You plan, and the coder codes.",
  middleware: [
    Subagents.make({ agents: [coder] }),
    Budget.make({ cost: 0.5, onExhausted: "finalAnswer" }),
    // A run that may wait for a person: the coder's questions wait with it.
    AskUser.make()
  ]
})

const model = TestChatModel.reactive(
  ({ messages }) =>
    messages.at(-1)?.role === "tool"
      ? "The coder has written the greeting."
      : TestChatModel.calls([{ name: "task", arguments: { subagent_type: "coder", description: "Write a greeting" } }]),
  { prices: { input: 3, output: 15 } }
)

const sessions = SessionStore.journal.pipe(Layer.provideMerge(MemorySessions.layer))
const services = Layer.mergeAll(sessions, model, MemoryBackend.layer(), NodeServices.layer)
const inbox = Inbox.layer({ deliver: Inbox.toAgents([lead]) }).pipe(Layer.provideMerge(services))

const program = Effect.gen(function* () {
  const { stopReason } = yield* Agent.run(lead, "We need a greeting", { threadId: "greeting" })
  assert.equal(stopReason, "suspended")

  const { decide, list } = yield* Inbox.Inbox
  const [waiting] = yield* list({ kinds: ["approval"] })
  assert(waiting !== undefined)
  yield* Console.log(`Waits for a person: ${waiting.request.description}`)
  yield* decide([Approval.approve(waiting.request)], { by: { id: "ada" } })

  const backend = yield* Backend.Backend
  const { entries } = yield* backend.ls("/")
  yield* Console.log(`Written: ${entries.map(({ path }) => path).join(", ")}`)
  assert.equal(entries.length, 1)
})

await Effect.runPromise(Effect.provide(program, inbox))
