/** Mailboxes over every storage: order, acknowledgement, limits, keys over crashes, and the tools of agents. */
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { NodeServices } from "@effect/platform-node"
import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Fiber, Layer, type Scope, Stream } from "effect"
import { Agent, Message } from "effect-deepagents"
import { Subagents } from "effect-deepagents/middleware"
import { Channel } from "effect-deepagents/patterns"
import * as ChannelEntity from "effect-deepagents/patterns/ChannelEntity"
import { MemorySessions, SessionStore } from "effect-deepagents/sessions"
import * as SqliteClient from "effect-deepagents/sessions/SqliteClient"
import { Storage } from "effect-deepagents/stores"
import { TestChatModel } from "effect-deepagents/testing"
import { TestRunner } from "effect/cluster"
import * as fc from "fast-check"
import * as journal from "../core/journal.ts"
import { scaled } from "../scale.ts"

const folder = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(tmpdir(), "channel-"))),
  (path) => Effect.sync(() => rmSync(path, { recursive: true, force: true }))
)

const storages = {
  memory: Storage.layerMemory,
  files: Layer.unwrap(Effect.map(folder, (path) => Storage.layerFile({ folder: path }))).pipe(
    Layer.provide(NodeServices.layer)
  ),
  sqlite: Layer.unwrap(
    Effect.map(folder, (path) => Layer.provide(Storage.layerSql, SqliteClient.layer({ file: join(path, "rows.db") })))
  )
}

type Options = Parameters<typeof Channel.layer>[0]

const over =
  (storage: Layer.Layer<Storage.Storage, unknown, Scope.Scope>) =>
  (options?: Options): Layer.Layer<Channel.Channel, unknown, Scope.Scope> =>
    Layer.provide(Channel.layer(options), storage)

/** The channels that keep the same promises. */
const channels = {
  memory: over(storages.memory),
  files: over(storages.files),
  sqlite: over(storages.sqlite),
  cluster: (options?: Options) =>
    ChannelEntity.layerClient.pipe(
      Layer.provide(Layer.provide(ChannelEntity.layer, over(storages.memory)(options))),
      Layer.provide(TestRunner.layer)
    )
}

type Act =
  | { readonly _tag: "Send"; readonly to: "ada" | "bob"; readonly key: string | undefined; readonly from: string }
  | { readonly _tag: "Receive"; readonly to: "ada" | "bob"; readonly most: number; readonly take: number }

const to = fc.constantFrom("ada" as const, "bob" as const)
const acts: fc.Arbitrary<ReadonlyArray<Act>> = fc.array(
  fc.oneof(
    fc.record({
      _tag: fc.constant("Send" as const),
      to,
      from: fc.constantFrom("x", "y"),
      key: fc.option(fc.constantFrom("1", "2", "3"), { nil: undefined })
    }),
    fc.record({
      _tag: fc.constant("Receive" as const),
      to,
      most: fc.integer({ min: 1, max: 4 }),
      take: fc.integer({ min: 0, max: 4 })
    })
  ),
  { maxLength: 40 }
)

const bodies = (all: ReadonlyArray<Channel.Envelope>) => all.map(({ body }) => body)

describe("Channel", () => {
  for (const [name, channelOf] of Object.entries(channels)) {
    it.live(`keeps order, keys and acknowledgements as a list does (${name})`, () => {
      const property = fc.asyncProperty(acts, (all) =>
        Effect.runPromise(
          Effect.gen(function* () {
            const channel = yield* Channel.Channel
            const model: Record<
              "ada" | "bob",
              Array<{ readonly body: number; readonly key: string; isDone: boolean }>
            > = {
              ada: [],
              bob: []
            }
            for (const [index, act] of all.entries()) {
              const box = model[act.to]
              if (act._tag === "Send") {
                const key = act.key === undefined ? `new ${index}` : `${act.from} ${act.key}`
                const sent = yield* channel.send({ from: act.from, to: act.to, body: index, key: act.key })
                const known = box.find((one) => one.key === key)
                if (known === undefined) box.push({ body: index, key, isDone: false })
                assert.strictEqual(sent.body, known?.body ?? index)
              } else {
                const open = box.filter(({ isDone }) => !isDone)
                const got = yield* channel.receive(act.to, { most: act.most })
                assert.deepStrictEqual(
                  bodies(got),
                  open.slice(0, act.most).map(({ body }) => body)
                )
                // Acknowledged out of order, twice, and with ids that there are not.
                const taken = got.toReversed().slice(0, act.take)
                const ids = taken.map(({ id }) => id)
                yield* channel.acknowledge(act.to, [...ids, ...ids, "9999", "x", "-1"])
                for (const one of box) if (taken.some(({ body }) => body === one.body)) one.isDone = true
              }
              assert.strictEqual(yield* channel.pending(act.to), box.filter(({ isDone }) => !isDone).length)
            }
            const history = yield* Stream.runCollect(channel.history("ada"))
            assert.deepStrictEqual(
              bodies(history),
              model.ada.map(({ body }) => body)
            )
          }).pipe(Effect.provide(channelOf()), Effect.scoped)
        )
      )
      return Effect.promise(() => fc.assert(property, { numRuns: scaled(name === "memory" ? 400 : 40) }))
    })
  }

  for (const name of ["sqlite", "cluster"] as const)
    it.live(`numbers the messages of many senders at once, without a gap (${name})`, () =>
      Effect.gen(function* () {
        const channel = yield* Channel.Channel
        const send = (index: number) =>
          channel.send({
            from: `s${index % 5}`,
            to: "ada",
            body: index,
            key: index % 2 === 0 ? `${index % 20}` : undefined
          })
        yield* Effect.forEach(
          Array.from({ length: 400 }, (_, index) => index),
          send,
          { concurrency: 50, discard: true }
        )
        const all = yield* Stream.runCollect(channel.history("ada"))
        // 200 without a key; ten keys, each of whose senders has one message of it.
        assert.strictEqual(all.length, 210)
        assert.deepStrictEqual(
          all.map(({ id }) => id),
          all.map((_, index) => `${index + 1}`)
        )
        yield* channel.acknowledge(
          "ada",
          all.slice(0, 205).map(({ id }) => id)
        )
        assert.strictEqual((yield* channel.receive("ada")).length, 5)
      }).pipe(Effect.provide(channels[name]()), Effect.scoped)
    )

  it.effect("sends a message with a key once, wherever its sender is cut off", () =>
    Effect.gen(function* () {
      for (let at = 1; at <= 12; at++) {
        // The storage of a process that dies at its n-th write or look.
        let left = Infinity
        const dying = Layer.effect(
          Storage.Storage,
          Effect.map(Storage.Storage, ({ table }) => ({
            table: (name: string) => {
              const inner = table(name)
              const runCutOff = <A, E>(work: Effect.Effect<A, E>): Effect.Effect<A, E> =>
                Effect.suspend(() => (left-- <= 0 ? Effect.interrupt : work))
              return {
                ...inner,
                get: (...args: Parameters<typeof inner.get>) => runCutOff(inner.get(...args)),
                swap: (...args: Parameters<typeof inner.swap>) => runCutOff(inner.swap(...args))
              }
            }
          }))
        ).pipe(Layer.provide(Storage.layerMemory))
        yield* Effect.gen(function* () {
          const channel = yield* Channel.Channel
          const send = channel.send({ from: "x", to: "ada", body: "once", key: "k" })
          left = at
          yield* Effect.exit(send)
          left = Infinity
          // Another message comes between the attempts.
          yield* channel.send({ from: "y", to: "ada", body: "other" })
          yield* send
          yield* send
          const all = bodies(yield* Stream.runCollect(channel.history("ada")))
          assert.sameMembers([...all], ["once", "other"], `cut off at ${at}`)
          assert.strictEqual(all.length, 2)
        }).pipe(Effect.provide(Layer.provide(Channel.layer(), dying)))
      }
    })
  )

  for (const name of ["memory", "cluster"] as const)
    it.live(`refuses oversized, surplus, unwanted and nameless messages (${name})`, () =>
      Effect.gen(function* () {
        const channel = yield* Channel.Channel
        const reasonOf = (message: Channel.Message) =>
          Effect.map(Effect.flip(channel.send(message)), ({ reason }) => reason._tag)
        assert.strictEqual(yield* reasonOf({ from: "x", to: "ada", body: "x".repeat(40) }), "TooLarge")
        assert.strictEqual(yield* reasonOf({ from: "spam", to: "ada", body: 1 }), "Refused")
        assert.strictEqual(yield* reasonOf({ from: "x", to: "", body: 1 }), "InvalidName")
        assert.strictEqual(yield* reasonOf({ from: "x", to: "a\nb", body: 1 }), "InvalidName")
        assert.strictEqual(yield* reasonOf({ from: "x", to: "ada", body: 1, wake: "interrupting" }), "NoAuthority")
        yield* channel.send({ from: "x", to: "ada", body: 1, key: "a" })
        yield* channel.send({ from: "x", to: "ada", body: 2 })
        assert.strictEqual(yield* reasonOf({ from: "x", to: "ada", body: 3 }), "Full")
        // It is sent already.
        assert.strictEqual((yield* channel.send({ from: "x", to: "ada", body: 1, key: "a" })).id, "1")
        yield* channel.acknowledge("ada", ["1"])
        yield* channel.send({ from: "x", to: "ada", body: 3 })
      }).pipe(
        Effect.provide(channels[name]({ maxSize: 30, maxPending: 2, accepts: (from) => from !== "spam" })),
        Effect.scoped
      )
    )

  for (const name of ["memory", "cluster"] as const)
    it.live(`says how a message wakes, and has one attendant (${name})`, () =>
      Effect.gen(function* () {
        const { hold, receive, release, send } = yield* Channel.Channel
        yield* send({ from: "x", to: "ada", body: 1 })
        yield* send({ from: "x", to: "ada", body: 2, wake: "waking" })
        yield* send({ from: "boss", to: "ada", body: 3, wake: "interrupting" })
        assert.deepStrictEqual(
          (yield* receive("ada")).map(({ wake }) => wake),
          [undefined, "waking", "interrupting"]
        )
        assert.deepStrictEqual([yield* hold("ada", "a"), yield* hold("ada", "b")], [true, false])
        yield* release("ada", "b")
        assert.isFalse(yield* hold("ada", "b"))
        yield* release("ada", "a")
        assert.isTrue(yield* hold("ada", "b"))
      }).pipe(Effect.provide(channels[name]({ mayInterrupt: (from) => from === "boss" })), Effect.scoped)
    )

  for (const name of ["memory", "cluster"] as const)
    it.live(`is two tools: a run that is cut off sends once, and loses no message that it read (${name})`, () => {
      const agent = Agent.make({ name: "scout", prompt: "", tools: Channel.tools({ as: "scout" }) })
      const model = TestChatModel.reactive(({ messages }) => {
        const last = messages.at(-1)
        const turns = messages.filter(({ role }) => role === "ai").length
        if (turns === 0) return TestChatModel.calls([{ name: "send_message", arguments: { to: "base", text: "here" } }])
        if (turns === 1) return TestChatModel.calls([{ name: "read_messages", arguments: {} }])
        return last === undefined ? "" : Message.text(last)
      })
      /** Kills the process before an append, and resumes the run in another one. Returns the number of appends. */
      const killedBefore = Effect.fnUntraced(function* (killed: number) {
        const channel = yield* Channel.Channel
        yield* channel.send({ from: "base", to: "scout", body: "go on\nat once" })
        const isKilled = yield* Deferred.make<void>()
        const thread = journal.stored()
        let appends = 0
        thread.onAppend = Effect.suspend(() =>
          ++appends === killed ? Effect.andThen(Deferred.succeed(isKilled, undefined), Effect.never) : Effect.void
        )
        const first = Agent.run(agent, "go", { threadId: "t" }).pipe(
          Effect.provide(Layer.merge(model, journal.layer({ t: thread })))
        )
        // An append is uninterruptible: the killed run stays as it is.
        yield* Effect.raceFirst(
          Effect.flatMap(Effect.forkDetach(first), Fiber.join).pipe(Effect.asVoid),
          Deferred.await(isKilled)
        )
        const again = journal.layer({ t: journal.stored(thread.entries) })
        const rest =
          thread.entries.length === 0
            ? Agent.run(agent, "go", { threadId: "t" })
            : Agent.resume(agent, { threadId: "t" })
        const { text } = yield* Effect.provide(rest, Layer.merge(model, again))
        assert.strictEqual(text, "base says:\n> go on\n> at once", `killed before append ${killed}`)
        assert.deepStrictEqual(bodies(yield* channel.receive("base")), ["here"], `killed before append ${killed}`)
        assert.strictEqual(yield* channel.pending("scout"), 0)
        return appends
      })
      return Effect.gen(function* () {
        for (let killed = 1; ; killed++) {
          const appends = yield* Effect.scoped(Effect.provide(killedBefore(killed), Layer.fresh(channels[name]())))
          if (appends < killed) break
          assert.isBelow(killed, 50)
        }
      })
    })

  it.live(
    "is two tools: sub-agents and branches of one thread whose calls have the same ids send one message each",
    () =>
      Effect.gen(function* () {
        const channel = yield* Channel.Channel
        const scout = Agent.make({
          name: "scout",
          description: "Reports to base",
          prompt: "scout",
          tools: Channel.tools({ as: "scout" })
        })
        const lead = Agent.make({ name: "lead", prompt: "lead", middleware: [Subagents.make({ agents: [scout] })] })
        const model = TestChatModel.reactive(({ messages, systemPrompt }) => {
          const [first] = messages
          if (messages.length > 1 || first === undefined) return "done"
          const text = Message.text(first)
          return TestChatModel.calls(
            systemPrompt.startsWith("scout")
              ? [{ id: "call_0", name: "send_message", arguments: { to: "base", text } }]
              : ["a", "b"].map((place, index) => ({
                  id: `call_${index}`,
                  name: "task",
                  arguments: { description: `${text} in ${place}`, subagent_type: "scout" }
                }))
          )
        })
        yield* Effect.gen(function* () {
          yield* Agent.run(lead, "rain", { threadId: "t" })
          yield* SessionStore.SessionStore.use((store) => store.rewind("t", null))
          yield* Agent.run(lead, "snow", { threadId: "t" })
        }).pipe(
          Effect.provide(Layer.mergeAll(model, SessionStore.journal.pipe(Layer.provideMerge(MemorySessions.layer))))
        )
        const sent = bodies(yield* channel.receive("base"))
        assert.deepStrictEqual(sent.map(String).toSorted(), ["rain in a", "rain in b", "snow in a", "snow in b"])
      }).pipe(Effect.provide(channels.memory()), Effect.scoped)
  )

  it.live("keeps a mailbox through the end of all runners, and repeats work that a runner's end cut off", () =>
    Effect.gen(function* () {
      const storage = yield* Storage.Storage
      let isCut = true
      // The first operation on the mailbox is interrupted after it was done, as by a runner that ends.
      const ending = Layer.effect(
        Channel.Channel,
        Effect.map(Channel.Channel, (channel) => ({
          ...channel,
          send: (message: Channel.Message) =>
            Effect.tap(channel.send(message), () =>
              Effect.suspend(() => {
                if (!isCut) return Effect.void
                isCut = false
                return Effect.interrupt
              })
            )
        }))
      ).pipe(Layer.provide(Channel.layer()), Layer.provide(Layer.succeed(Storage.Storage, storage)))
      const cluster = ChannelEntity.layerClient.pipe(
        Layer.provide(Layer.provide(ChannelEntity.layer, ending)),
        Layer.provide(TestRunner.layer)
      )
      yield* Channel.Channel.use((channel) => channel.send({ from: "x", to: "ada", body: 1 })).pipe(
        Effect.provide(Layer.fresh(cluster))
      )
      assert.isFalse(isCut)
      yield* Effect.gen(function* () {
        const channel = yield* Channel.Channel
        assert.deepStrictEqual(bodies(yield* channel.receive("ada")), [1])
      }).pipe(Effect.provide(Layer.fresh(cluster)))
    }).pipe(Effect.provide(Storage.layerMemory))
  )
})
