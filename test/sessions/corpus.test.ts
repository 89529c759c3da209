/**
 * Threads that earlier versions wrote, one folder a version, open and go on with this one. `done`: two exchanges with a
 * tool; `waiting`: a deep agent suspended before `write_file`; `cut`: killed inside of the tool `pay`, after it had taken
 * effect; `forked`: a fork of `done` that went on.
 */
import { cpSync, readdirSync } from "node:fs"
import { join } from "node:path"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Schema } from "effect"
import { Agent, Approval, Backend, Checkpoint, type Journal, Message, Tool } from "effect-deepagents"
import { MemoryBackend } from "effect-deepagents/backends"
import { DeepAgent } from "effect-deepagents/deep"
import { JsonlSessions, SessionStore } from "effect-deepagents/sessions"
import * as SqliteSessions from "effect-deepagents/sessions/SqliteSessions"
import { AgentTest, TestChatModel } from "effect-deepagents/testing"
import { folder } from "./places.ts"

const corpus = join(import.meta.dirname, "corpus")

const stores = {
  jsonl: (at: string) => JsonlSessions.layer({ folder: join(at, "jsonl") }).pipe(Layer.provide(NodeServices.layer)),
  sqlite: (at: string) => SqliteSessions.layer({ file: join(at, "threads.db") })
}

const deep = DeepAgent.make({
  name: "deep",
  prompt: "You write.",
  approvals: { mode: "suspend", tools: { write_file: true } }
})

const texts = (messages: ReadonlyArray<Message.Message>, role: Message.Message["role"]) =>
  messages.filter((message) => message.role === role).map(Message.text)

for (const version of readdirSync(corpus)) {
  for (const [name, store] of Object.entries(stores)) {
    /** On a copy: what is kept stays as it was written. */
    const inCopy = <A, E>(body: Effect.Effect<A, E, SessionStore.SessionStore | Journal.Journal | Backend.Backend>) =>
      Effect.gen(function* () {
        const at = yield* folder
        cpSync(join(corpus, version), at, { recursive: true })
        const layer = SessionStore.journal.pipe(Layer.provideMerge(store(at)), Layer.merge(MemoryBackend.layer()))
        return yield* Effect.provide(body, layer)
      }).pipe(Effect.scoped)

    describe(`threads of ${version} in ${name}`, () => {
      for (const threadId of ["done", "forked"]) {
        it.live(`${threadId} goes on`, () =>
          inCopy(
            Effect.gen(function* () {
              const plain = Agent.make({ name: "plain", prompt: "p" })
              const result = yield* Agent.run(plain, "and now?", { threadId }).pipe(
                Effect.provide(TestChatModel.script(["now this"]))
              )
              assert.strictEqual(result.text, "now this")
              assert.isAbove(texts(result.messages, "tool").length, 0)
              assert.deepStrictEqual(AgentTest.pairingProblems(result.messages), [])
            })
          )
        )
      }

      it.live("waiting takes the decision it waits for", () =>
        inCopy(
          Effect.gen(function* () {
            const pending = yield* Checkpoint.pending(
              (yield* SessionStore.checkpoint("waiting")) ?? assert.fail("no thread")
            )
            assert.deepStrictEqual(
              pending.map(({ toolName }) => toolName),
              ["write_file"]
            )
            const result = yield* Agent.resume(deep, {
              threadId: "waiting",
              decisions: pending.map((request) => Approval.approve(request))
            }).pipe(Effect.provide(TestChatModel.script(["written"])))
            assert.strictEqual(result.stopReason, "completed")
            const written = yield* Backend.Backend.use(({ ls }) => ls("/"))
            assert.strictEqual(written.entries.length, 1)
          })
        )
      )

      it.live("cut says that the outcome of the payment is not known", () =>
        inCopy(
          Effect.gen(function* () {
            let paid = 0
            const pay = Tool.make("pay", {
              description: "Pays",
              parameters: { amount: Schema.Finite },
              execute: () => Effect.sync(() => `paid ${++paid}`)
            })
            const payer = Agent.make({ name: "payer", prompt: "p", tools: [pay] })
            const result = yield* Agent.run(payer, "did you pay?", { threadId: "cut" }).pipe(
              Effect.provide(TestChatModel.script(["I do not know"]))
            )
            assert.strictEqual(paid, 0)
            assert.match(texts(result.messages, "tool").join(), /not known/)
          })
        )
      )
    })
  }
}
