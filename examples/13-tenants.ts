/**
 * One store for many tenants: each request says whose files it works on, and no path leads to those of somebody else.
 */
import assert from "node:assert/strict"
import { NodeRuntime } from "@effect/platform-node"
import { Console, Context, Effect, Layer, Result } from "effect"
import { Agent, Backend, BackendError, Message } from "effect-deepagents"
import { FileTools, StoreBackend } from "effect-deepagents/backends"
import { TestChatModel } from "effect-deepagents/testing"
import { KeyValueStore } from "effect/persistence"

/** Who asks. A server sets it for each request, from what it has checked itself; never from what a model says. */
const Tenant = Context.Reference<string | undefined>("examples/Tenant", { defaultValue: () => undefined })

const nobody = BackendError.make("open", "/", { _tag: "PermissionDenied" }, { detail: "nobody is logged in" })

// One layer serves all: the namespace is asked for with each operation. Without a tenant there are no files at all.
const files = StoreBackend.layer({
  namespace: Effect.flatMap(Tenant, (tenant) =>
    tenant === undefined ? Effect.fail(nobody) : Effect.succeed(["tenants", tenant])
  )
}).pipe(Layer.provide(KeyValueStore.layerMemory))

const agent = Agent.make({ name: "clerk", prompt: "You keep the files of a customer.", tools: FileTools.make() })

const keep = (content: string) =>
  TestChatModel.script([
    TestChatModel.calls([{ name: "write_file", arguments: { file_path: "/contract.md", content } }]),
    "Kept."
  ])

const spy = TestChatModel.script([
  TestChatModel.calls([
    { name: "read_file", arguments: { file_path: "/../acme/contract.md" } },
    { name: "read_file", arguments: { file_path: "/tenants/acme/contract.md" } },
    { name: "grep", arguments: { pattern: "price" } }
  ]),
  "I only see your own files."
])

const ask = (tenant: string, question: string, model: typeof spy) =>
  Agent.run(agent, question).pipe(Effect.provide(model), Effect.provideService(Tenant, tenant))

const program = Effect.gen(function* () {
  // Both at once, and both to the same path.
  yield* Effect.all(
    [ask("acme", "Keep our contract.", keep("price: 10\n")), ask("bolt", "Keep our contract.", keep("discount: 2\n"))],
    { concurrency: 2 }
  )
  const { messages } = yield* ask("bolt", "What does acme pay?", spy)
  const results = messages.filter((message) => message.role === "tool").map(Message.text)
  for (const result of results) yield* Console.log(result)
  assert.match(results[0] ?? "", /leads out of the root/)
  assert.match(results[1] ?? "", /no such file/)
  assert.doesNotMatch(results[2] ?? "", /contract/)

  const backend = yield* Backend.Backend
  const read = backend.read("/contract.md").pipe(Effect.map((file) => (file.kind === "text" ? file.text : "")))
  assert.equal(yield* Effect.provideService(read, Tenant, "acme"), "price: 10")
  assert.equal(yield* Effect.provideService(read, Tenant, "bolt"), "discount: 2")
  const anonymous = yield* Effect.result(read)
  assert(Result.isFailure(anonymous))
  yield* Console.log(anonymous.failure.message)
  assert.equal(anonymous.failure.reason._tag, "PermissionDenied")
})

NodeRuntime.runMain(program.pipe(Effect.provide(files)))
