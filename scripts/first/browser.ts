/** Runs in a browser, from one bundled file: a deep agent on files in memory. Its answer is the title of the page. */
import { Effect, Layer } from "effect"
import { Agent } from "effect-deepagents"
import { MemoryBackend } from "effect-deepagents/backends"
import { DeepAgent } from "effect-deepagents/deep"
import { MemorySessions, SessionStore } from "effect-deepagents/sessions"
import { TestChatModel } from "effect-deepagents/testing"

const agent = DeepAgent.make({ name: "hello", prompt: "You help." })
const model = TestChatModel.script([
  TestChatModel.calls([{ name: "write_file", arguments: { file_path: "/a.txt", content: "Hello from a file." } }]),
  TestChatModel.calls([{ name: "read_file", arguments: { file_path: "/a.txt" } }]),
  (request) => (JSON.stringify(request.messages).includes("Hello from a file.") ? "It says hello." : "It is not there.")
])
const threads = SessionStore.journal.pipe(Layer.provideMerge(MemorySessions.layer))

const { text } = await Effect.runPromise(
  Agent.run(agent, "Write it down.", { threadId: "ada" }).pipe(Effect.provide([model, threads, MemoryBackend.layer()]))
)
Reflect.set(Reflect.get(globalThis, "document"), "title", text)
