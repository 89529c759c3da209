/** Work that must survive a dead runner, a storage that fails for a moment, and a person who stops a run at once. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Fiber, Latch, Layer, Schema, Scope, Stream } from "effect"
import { Agent, AgentError, Approval, Message, SessionError, Tool } from "effect-deepagents"
import { AgentClient, AgentEntity, Wait } from "effect-deepagents/durable"
import { HumanInTheLoop } from "effect-deepagents/middleware"
import { MemorySessions, SessionStore } from "effect-deepagents/sessions"
import { AgentTest, TestChatModel } from "effect-deepagents/testing"
import { TestRunner } from "effect/cluster"
import { TestClock } from "effect/testing"
import { runner, ticking } from "./entities.ts"

const ship = (ran: Array<number>) =>
  Tool.make("ship", {
    description: "Ships",
    parameters: { n: Schema.Int },
    execute: ({ n }) => Effect.sync(() => (ran.push(n), `shipped ${n}`))
  })

const guarded = (ran: Array<number>) =>
  AgentEntity.make({
    name: "a",
    agent: Agent.make({
      name: "a",
      prompt: "",
      tools: [ship(ran)],
      middleware: [HumanInTheLoop.make({ tools: { ship: true } }), Wait.make()]
    })
  })

const usage = { inputTokens: 0, outputTokens: 0, cacheReadTokens: 0, cacheWriteTokens: 0, reasoningTokens: 0 }

/** The state after a runner dies, or is stopped, just after it began a run. */
const died = (threadId: string, end?: "interrupted") =>
  Effect.gen(function* () {
    const store = yield* SessionStore.SessionStore
    const { id } = yield* store.leaf(threadId)
    const entries: ReadonlyArray<SessionStore.NewEntry["entry"]> = [
      { _tag: "RunStarted", runId: "dead", agent: "a" },
      { _tag: "Step", usage, rounds: 0 },
      ...(end === undefined
        ? []
        : [{ _tag: "RunSettled", runId: "dead", outcome: end } as const, { _tag: "Step", usage, rounds: 0 } as const])
    ]
    yield* store.append(threadId, {
      leaf: id,
      entries: entries.map((entry, index) => ({ id: `${id}-${index}`, entry }))
    })
  })

const shipping = TestChatModel.calls([{ name: "ship", arguments: { n: 5 } }])
const waiting = TestChatModel.calls([{ name: "wait", arguments: { seconds: 60 } }])

type Failure = (operation: string) => Effect.Effect<never, SessionError.SessionError>

const failAll: Failure = (operation) =>
  Effect.fail(SessionError.make(operation, "t", { _tag: "Unavailable", problem: "Connection closed" }))

/** A store of which some operations fail for as long as they are told to. */
const failing = (fails: (operation: string) => boolean, failure: Failure = failAll) =>
  Layer.effect(
    SessionStore.SessionStore,
    Effect.map(SessionStore.SessionStore, (store): SessionStore.Service => {
      const gate =
        <Args extends ReadonlyArray<unknown>, A>(
          operation: string,
          run: (...args: Args) => Effect.Effect<A, SessionError.SessionError>
        ) =>
        (...args: Args) =>
          Effect.suspend(() => (fails(operation) ? failure(operation) : run(...args)))
      return {
        ...store,
        load: gate("load", store.load),
        info: gate("info", store.info),
        leaf: gate("leaf", store.leaf),
        label: gate("label", store.label),
        labels: gate("labels", store.labels),
        append: gate("append", store.append)
      }
    })
  ).pipe(Layer.provide(MemorySessions.layer))

describe("work that must not be lost", () => {
  for (const end of [undefined, "interrupted"] as const) {
    it.effect(`a decision whose run was cut off as it began (${end ?? "killed"}) is acted on when it comes again`, () =>
      Effect.gen(function* () {
        const ran: Array<number> = []
        const entity = guarded(ran)
        yield* Effect.gen(function* () {
          const client = yield* AgentClient.of(entity, "t")
          const first = yield* client.send("go", { id: "1" })
          assert.strictEqual(first.stopReason, "suspended")
          yield* died("t", end)
          const second = yield* client.decide(first.pending.map((request) => Approval.approve(request)))
          assert.strictEqual(second.text, "done")
          assert.deepStrictEqual(ran, [5])
          assert.deepStrictEqual(AgentTest.pairingProblems(yield* client.history), [])
        }).pipe(ticking, Effect.provide(runner(entity)))
      }).pipe(Effect.provide(TestChatModel.script([shipping, "done"])))
    )

    it.effect(`a wait whose run was cut off as it began (${end ?? "killed"}) ends`, () =>
      Effect.gen(function* () {
        const entity = guarded([])
        yield* Effect.gen(function* () {
          const client = yield* AgentClient.of(entity, "t")
          assert.strictEqual((yield* ticking(client.send("go", { id: "1" }))).stopReason, "suspended")
          yield* died("t", end)
          yield* TestClock.adjust("2 minutes")
          const history = yield* ticking(
            Effect.repeat(Effect.delay(client.history, "1 second"), { until: ({ length }) => length === 4, times: 300 })
          )
          assert.deepStrictEqual(
            history.map(({ role }) => role),
            ["human", "ai", "tool", "ai"]
          )
        }).pipe(Effect.provide(runner(entity)))
      }).pipe(Effect.provide(TestChatModel.script([waiting, "done"])))
    )
  }

  it.effect("a wait that is told of again has a wake-up of its own", () =>
    Effect.gen(function* () {
      const entity = guarded([])
      yield* Effect.gen(function* () {
        const client = yield* AgentClient.of(entity, "t")
        const first = yield* ticking(client.send("go", { id: "1" }))
        assert.strictEqual(first.pending.length, 2)
        const ships = first.pending.filter(({ toolName }) => toolName === "ship")
        const second = yield* ticking(client.decide(ships.map((request) => Approval.approve(request))))
        assert.deepStrictEqual(
          second.pending.map(({ toolName }) => toolName),
          ["wait"]
        )
        yield* TestClock.adjust("2 minutes")
        const history = yield* ticking(
          Effect.repeat(Effect.delay(client.history, "1 second"), { until: ({ length }) => length === 5, times: 300 })
        )
        assert.deepStrictEqual(
          history.map(({ role }) => role),
          ["human", "ai", "tool", "tool", "ai"]
        )
      }).pipe(Effect.provide(runner(entity)))
    }).pipe(
      Effect.provide(
        TestChatModel.script([
          TestChatModel.calls([
            { name: "ship", arguments: { n: 5 } },
            { name: "wait", arguments: { seconds: 60 } }
          ]),
          "done"
        ])
      )
    )
  )

  for (const operation of ["load", "info", "leaf", "labels", "label", "append"]) {
    const interrupted: Failure = () => Effect.interrupt
    for (const [times, what, failure] of [
      [1, "failures", failAll],
      [30, "failures", failAll],
      [1, "interruptions", interrupted]
    ] as const) {
      it.effect(
        `${times} ${what} of "${operation}" by a storage that is away don't fail an input that was accepted`,
        () =>
          Effect.gen(function* () {
            let left = 0
            const entity = AgentEntity.make({ name: "a", agent: Agent.make({ name: "a", prompt: "" }) })
            const store = failing((one) => one === operation && left-- > 0, failure)
            yield* Effect.gen(function* () {
              const client = yield* AgentClient.of(entity, "t")
              assert.strictEqual((yield* client.send("one", { id: "1" })).text, "first")
              left = times
              assert.strictEqual((yield* client.send("two", { id: "2" })).text, "second")
              assert.strictEqual((yield* client.send("two", { id: "2" })).text, "second")
              left = 0
              assert.deepStrictEqual(
                (yield* client.history).map(({ role }) => role),
                ["human", "ai", "human", "ai"]
              )
            }).pipe(
              ticking,
              Effect.provide(
                AgentEntity.layer(entity).pipe(Layer.provideMerge(TestRunner.layer), Layer.provideMerge(store))
              )
            )
          }).pipe(
            Effect.provide(
              TestChatModel.reactive(({ messages }) =>
                messages.filter(({ role }) => role === "human").length === 1 ? "first" : "second"
              )
            )
          )
      )
    }
  }

  for (const isWatched of [false, true]) {
    it.live(`a run that is stopped in its first moment stands still${isWatched ? ", for who watches too" : ""}`, () =>
      Effect.gen(function* () {
        const entity = AgentEntity.make({ name: "a", agent: Agent.make({ name: "a", prompt: "" }) })
        yield* Effect.gen(function* () {
          for (let delay = 0; delay < 12; delay++) {
            const client = yield* AgentClient.of(entity, `t${delay}`)
            const watching = isWatched ? yield* Effect.forkChild(Stream.runDrain(client.events())) : undefined
            if (isWatched) yield* Effect.sleep(5)
            const sending = yield* Effect.forkChild(client.send("go", { id: "1" }), { startImmediately: true })
            let wasStopped = false
            while (!wasStopped && sending.pollUnsafe() === undefined) {
              for (let turn = 0; turn < delay; turn++) yield* Effect.yieldNow
              wasStopped = yield* client.interrupt
              yield* Effect.yieldNow
            }
            const outcome = yield* Effect.timeout(Fiber.join(sending), "5 seconds")
            if (wasStopped) {
              assert.strictEqual(outcome.stopReason, "interrupted")
              assert.deepStrictEqual(yield* client.send("go", { id: "1" }), outcome)
            }
            const history = yield* client.history
            assert.strictEqual(history[0]?.id, "input:1", "what was accepted is in the thread")
            const next = yield* Effect.timeout(client.send("on", { id: "2" }), "5 seconds")
            assert.strictEqual(next.text, "done on")
            if (watching !== undefined) yield* Fiber.interrupt(watching)
          }
        }).pipe(Effect.provide(runner(entity)))
      }).pipe(
        Effect.provide(
          TestChatModel.reactive(({ messages }) => {
            const last = messages.findLast(({ role }) => role === "human")
            return `done ${last === undefined ? "" : Message.text(last)}`
          })
        )
      )
    )
  }

  it.effect("a run that is stopped while its thread is read is not begun, and its input not given again", () =>
    Effect.gen(function* () {
      const reads = yield* Latch.make()
      const goOn = yield* Latch.make(true)
      const entity = AgentEntity.make({ name: "a", agent: Agent.make({ name: "a", prompt: "" }) })
      const slow = Layer.effect(
        SessionStore.SessionStore,
        Effect.map(SessionStore.SessionStore, (store) => ({
          ...store,
          info: (id: string) => Effect.andThen(reads.open, Effect.andThen(goOn.await, store.info(id)))
        }))
      ).pipe(Layer.provide(MemorySessions.layer))
      yield* Effect.gen(function* () {
        const client = yield* AgentClient.of(entity, "t")
        goOn.closeUnsafe()
        const sending = yield* Effect.forkChild(client.send("go", { id: "1" }))
        yield* reads.await
        const stopping = yield* Effect.forkChild(client.interrupt)
        yield* Effect.sleep("1 second")
        yield* goOn.open
        assert.isTrue(yield* Fiber.join(stopping))
        const outcome = yield* Fiber.join(sending)
        assert.strictEqual(outcome.stopReason, "interrupted")
        assert.deepStrictEqual(yield* client.send("go", { id: "1" }), outcome)
        assert.deepStrictEqual(
          (yield* client.history).map(({ role }) => role),
          ["human"]
        )
        assert.strictEqual((yield* client.send("on", { id: "2" })).text, "done")
      }).pipe(
        ticking,
        Effect.provide(AgentEntity.layer(entity).pipe(Layer.provideMerge(TestRunner.layer), Layer.provideMerge(slow)))
      )
    }).pipe(Effect.provide(TestChatModel.script(["done"])))
  )
})

type Write = (store: SessionStore.Service) => Effect.Effect<void, SessionError.SessionError>

/** A store to which another runner writes between two reads: just before `due` gets to 0. */
const failDue = (due: { left: number }, write: Write) =>
  Layer.effect(
    SessionStore.SessionStore,
    Effect.map(SessionStore.SessionStore, (store): SessionStore.Service => {
      const read =
        <Args extends ReadonlyArray<unknown>, A>(run: (...args: Args) => Effect.Effect<A, SessionError.SessionError>) =>
        (...args: Args) =>
          Effect.suspend(() => (--due.left === 0 ? Effect.andThen(write(store), run(...args)) : run(...args)))
      return {
        ...store,
        info: read(store.info),
        leaf: read(store.leaf),
        load: read(store.load),
        labels: read(store.labels)
      }
    })
  ).pipe(Layer.provide(MemorySessions.layer))

const append = (store: SessionStore.Service, entries: ReadonlyArray<SessionStore.NewEntry["entry"]>) =>
  Effect.gen(function* () {
    const { id } = yield* store.leaf("t")
    yield* store.append("t", { leaf: id, entries: entries.map((entry) => ({ id: Message.makeId(), entry })) })
  })

describe("a runner that lost its thread and goes on with it", () => {
  const step = { _tag: "Step", usage, rounds: 1 } as const
  const asked = { ...Message.human("go"), id: "input:1" }

  for (let reads = 1; reads <= 8; reads++) {
    it.effect(`answers with all entries that another runner wrote meanwhile (before read ${reads})`, () =>
      Effect.gen(function* () {
        const due = { left: 0 }
        const entity = AgentEntity.make({ name: "a", agent: Agent.make({ name: "a", prompt: "" }) })
        const store = failDue(due, (store) =>
          append(store, [
            { _tag: "Message", message: Message.ai("said there") },
            { _tag: "RunSettled", runId: "there", outcome: "completed" },
            step
          ])
        )
        yield* Effect.gen(function* () {
          const sessions = yield* SessionStore.SessionStore
          yield* sessions.create({ threadId: "t" })
          yield* append(sessions, [
            { _tag: "RunStarted", runId: "there", agent: "a" },
            { _tag: "Message", message: asked },
            step
          ])
          const client = yield* AgentClient.of(entity, "t")
          due.left = reads
          const { stopReason, text } = yield* client.send("go", { id: "1" })
          assert.strictEqual(stopReason, "completed")
          assert.strictEqual(text, due.left > 0 ? "said here" : "said there")
          due.left = 0
          const history = yield* client.history
          assert.deepStrictEqual(
            history.map((message) => Message.text(message)),
            ["go", text]
          )
        }).pipe(
          ticking,
          Effect.provide(
            AgentEntity.layer(entity).pipe(Layer.provideMerge(TestRunner.layer), Layer.provideMerge(store))
          )
        )
      }).pipe(Effect.provide(TestChatModel.reactive(() => "said here")))
    )
  }
})

describe("a client whose cluster is shut down", () => {
  it.live("fails its requests and its watched events at once", () =>
    Effect.gen(function* () {
      const entity = AgentEntity.make({ name: "a", agent: Agent.make({ name: "a", prompt: "" }) })
      const scope = yield* Scope.make()
      const context = yield* Layer.buildWithScope(runner(entity), scope)
      const client = yield* Effect.provideContext(AgentClient.of(entity, "t"), context)
      assert.strictEqual((yield* client.send("go")).text, "done")
      const watching = yield* Effect.forkChild(Stream.runDrain(client.events()))
      yield* Scope.close(scope, Exit.void)
      const ends: ReadonlyArray<Effect.Effect<unknown, unknown>> = [
        client.send("on"),
        client.post("on"),
        client.history,
        client.interrupt,
        Stream.runDrain(client.events()),
        Fiber.join(watching)
      ]
      for (const end of ends) {
        const exit = yield* Effect.timeout(Effect.exit(end), "2 seconds")
        assert.isTrue(Exit.isFailure(exit) && !Exit.hasDies(exit), JSON.stringify(exit))
      }
    }).pipe(Effect.provide(TestChatModel.script(["done"])))
  )
})

describe("inputs of a client", () => {
  it.effect("another input with an id that is taken is a Conflict; the same one is not", () =>
    Effect.gen(function* () {
      const entity = AgentEntity.make({ name: "a", agent: Agent.make({ name: "a", prompt: "" }) })
      yield* Effect.gen(function* () {
        const client = yield* AgentClient.of(entity, "t")
        const [first, other] = yield* Effect.all(
          [client.send("pay 1", { id: "1" }), Effect.flip(client.send("pay 2", { id: "1" }))],
          { concurrency: 2 }
        )
        assert.strictEqual(first.text, "done")
        assert.strictEqual(other._tag, "Conflict")
        assert.include(other.message, '"1"')
        const blocks = Message.human([{ type: "text", text: "pay 1" }])
        assert.strictEqual((yield* client.send(blocks, { id: "1" })).text, "done")
        assert.strictEqual((yield* client.history).length, 2)
      }).pipe(ticking, Effect.provide(runner(entity)))
    }).pipe(Effect.provide(TestChatModel.script(["done"])))
  )

  it.effect("threads, entities and inputs whose ids have slashes are never each other's", () =>
    Effect.gen(function* () {
      const agent = Agent.make({ name: "a", prompt: "" })
      const entity = AgentEntity.make({ name: "a", agent })
      const other = AgentEntity.make({ name: "a/b", agent })
      yield* Effect.gen(function* () {
        const pairs = [
          [entity, "x", "y/Send/z"],
          [entity, "x/Send/y", "z"],
          [entity, "x%2FSend%2Fy", "z"],
          [entity, "x", "y%2FSend%2Fz"],
          [entity, "b/c", "1"],
          [other, "c", "1"]
        ] as const
        for (const [of, threadId, id] of pairs) {
          const client = yield* AgentClient.of(of, threadId)
          const { text } = yield* client.send(`secret of ${of.name} ${threadId} ${id}`, { id })
          assert.strictEqual(text, `secret of ${of.name} ${threadId} ${id}`)
        }
      }).pipe(ticking, Effect.provide(AgentEntity.layer(other).pipe(Layer.provideMerge(runner(entity)))))
    }).pipe(
      Effect.provide(
        TestChatModel.reactive(({ messages }) => {
          const last = messages.findLast(({ role }) => role === "human")
          return last === undefined ? "" : Message.text(last)
        })
      )
    )
  )

  it.effect("refuses an id that the storage can't hold, with the reason", () =>
    Effect.gen(function* () {
      const entity = AgentEntity.make({ name: "a", agent: Agent.make({ name: "a", prompt: "" }) })
      yield* Effect.gen(function* () {
        for (const id of ["", "a\u0000b", "\ud800", "a\nb", "x".repeat(256)]) {
          const refused = yield* Effect.flip(AgentClient.of(entity, id))
          assert.strictEqual(refused.reason._tag, "InvalidId", JSON.stringify(id.slice(0, 9)))
        }
        const client = yield* AgentClient.of(entity, "x".repeat(255))
        const request = { id: "nobody" }
        for (const id of ["a\u0000b", "\ud800", "\udfff"]) {
          for (const attempt of [
            client.send("hello", { id }),
            client.post("hello", { id }),
            client.decide([Approval.approve(request)], { id })
          ]) {
            const refused = yield* Effect.flip(Effect.asVoid(attempt))
            assert(SessionError.isSessionError(refused))
            assert.strictEqual(refused.reason._tag, "InvalidId")
          }
        }
        assert.strictEqual((yield* client.send("hello", { id: "x".repeat(5_000) })).text, "done")
      }).pipe(ticking, Effect.provide(runner(entity)))
    }).pipe(Effect.provide(TestChatModel.script(["done"])))
  )

  it.effect("refuses an input that is too large to be read again before it is stored, with limit and size", () =>
    Effect.gen(function* () {
      const entity = AgentEntity.make({ name: "a", agent: Agent.make({ name: "a", prompt: "" }) })
      yield* Effect.gen(function* () {
        const client = yield* AgentClient.of(entity, "t")
        const large = "x".repeat(17_000_000)
        for (const attempt of [
          client.send(large, { id: "1" }),
          client.post(large, { id: "1" }),
          client.post("hello", { id: large }),
          client.steer(large),
          client.decide([{ _tag: "Respond", id: "1", text: large }])
        ]) {
          const refused = yield* Effect.flip<unknown, { readonly _tag: string }, never>(attempt)
          if (!SessionError.isSessionError(refused) || refused.reason._tag !== "TooLarge") {
            return assert.fail(`not refused: ${refused._tag}`)
          }
          assert.isAbove(refused.reason.bytes, 17_000_000)
          assert.strictEqual(refused.reason.limit, 15 * 1024 * 1024)
          assert.include(refused.message, "15728640")
          assert.isBelow(refused.message.length, 400)
        }
        // Short texts of long encodings count by their bytes.
        assert.strictEqual((yield* Effect.flip(client.send("\u0001".repeat(3_000_000))))._tag, "SessionError")
        assert.strictEqual((yield* client.send("x".repeat(8_000_000), { id: "1" })).text, "done")
      }).pipe(ticking, Effect.provide(runner(entity)))
    }).pipe(Effect.provide(TestChatModel.script(["done"])))
  )

  it.effect("an outcome that can't be stored as an answer is told as such, and the thread goes on", () =>
    Effect.gen(function* () {
      const entity = AgentEntity.make({ name: "a", agent: Agent.make({ name: "a", prompt: "" }) })
      yield* Effect.gen(function* () {
        const client = yield* AgentClient.of(entity, "t")
        // Its text is there twice in an outcome: as text and as output.
        const error = yield* Effect.flip(client.send("hello", { id: "1" }))
        if (!(error instanceof AgentError.AgentError) || error.reason._tag !== "Thread") return assert.fail(error._tag)
        assert.strictEqual(error.reason.error.reason._tag, "TooLarge")
        assert.strictEqual((yield* client.history).length, 2)
        assert.strictEqual((yield* client.send("hello", { id: "2" })).text, "short")
      }).pipe(ticking, Effect.provide(runner(entity)))
    }).pipe(Effect.provide(TestChatModel.script(["y".repeat(9_000_000), "short"])))
  )
})
