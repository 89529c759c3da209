/** Threads of earlier versions, one folder a version, open and go on with this version, in every store and state. A server gets them by import. */
import { cpSync, existsSync, readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { isDeepStrictEqual } from "node:util"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { assert, describe, it, layer } from "@effect/vitest"
import { Effect, Layer, Schema, Stream } from "effect"
import { Agent, Approval, Backend, Checkpoint, type Journal, Message, Sources } from "effect-deepagents"
import { MemoryBackend } from "effect-deepagents/backends"
import { BackgroundSubagents, BackgroundTasks } from "effect-deepagents/middleware"
import { JsonlSessions, MemorySessions, SessionStore } from "effect-deepagents/sessions"
import * as SqliteSessions from "effect-deepagents/sessions/SqliteSessions"
import { AgentTest, TestChatModel } from "effect-deepagents/testing"
import * as fc from "fast-check"
import { isFull, scaled } from "../scale.ts"
import { hasRedis } from "../servers/redis.ts"
import { encodings, type Format, formatOf, records } from "./format.ts"
import * as places from "./places.ts"
import * as written from "./written.ts"

const corpus = join(import.meta.dirname, "corpus")

const texts = (messages: ReadonlyArray<Message.Message>, role: Message.Message["role"]) =>
  messages.filter((message) => message.role === role).map(Message.text)

const { reactive, script } = TestChatModel

/** Pays, and counts it. */
const till = () => {
  const paid: Array<string> = []
  return { paid, pay: Effect.sync(() => (paid.push("paid"), "paid")) }
}

/** The requests that a thread waits for. */
const pendingOf = Effect.fnUntraced(function* (threadId: string) {
  return yield* Checkpoint.pending((yield* SessionStore.checkpoint(threadId)) ?? assert.fail("no thread"))
})

const approved = Effect.fnUntraced(function* (threadId: string, toolName: string) {
  const pending = yield* pendingOf(threadId)
  assert.deepStrictEqual(
    pending.map((request) => request.toolName),
    [toolName]
  )
  return { threadId, decisions: pending.map((request) => Approval.approve(request)) }
})

const goesOn = (threadId: string) =>
  Effect.gen(function* () {
    const result = yield* Agent.run(written.plain, "and now?", { threadId })
    assert.strictEqual(result.text, "now this")
    assert.isAbove(texts(result.messages, "tool").length, 0)
    assert.deepStrictEqual(AgentTest.pairingProblems(result.messages), [])
  }).pipe(Effect.provide(script(["now this"])))

type Needs = SessionStore.SessionStore | Journal.Journal | Backend.Backend | BackgroundTasks.BackgroundTasks

/** The truth about each state, after it went on. */
const truths: { readonly [threadId: string]: readonly [title: string, check: Effect.Effect<unknown, unknown, Needs>] } =
  {
    done: ["goes on", goesOn("done")],
    forked: ["goes on", goesOn("forked")],

    output: [
      "gives another answer of its schema",
      Effect.gen(function* () {
        const { output } = yield* Agent.run(written.forecaster, "And now?", { threadId: "output" })
        assert.deepStrictEqual(output, { city: "Bern", degrees: 4 })
      }).pipe(Effect.provide(script(['{"city":"Bern","degrees":4}'])))
    ],

    waiting: [
      "takes the decision that it waits for",
      Effect.gen(function* () {
        const result = yield* Agent.resume(written.deep, yield* approved("waiting", "write_file"))
        assert.strictEqual(result.stopReason, "completed")
        assert.include(JSON.stringify(result.state["todos"]), "in_progress")
        const there = yield* Backend.Backend.use(({ ls }) => ls("/"))
        assert.strictEqual(there.entries.length, 1)
      }).pipe(Effect.provide(script(["written"])))
    ],

    cut: [
      "says that the outcome of the payment is not known",
      Effect.gen(function* () {
        const { paid, pay } = till()
        const result = yield* Agent.run(written.payer(pay), "did you pay?", { threadId: "cut" })
        assert.deepStrictEqual(paid, [])
        assert.match(texts(result.messages, "tool").join(), /not known/)
      }).pipe(Effect.provide(script(["I do not know"])))
    ],

    parked: [
      "pays again when it is told to",
      Effect.gen(function* () {
        const { paid, pay } = till()
        const result = yield* Agent.resume(written.payer(pay), yield* approved("parked", "pay"))
        assert.deepStrictEqual([paid.length, result.stopReason], [1, "completed"])
      }).pipe(Effect.provide(script(["paid"])))
    ],

    partial: [
      "asks for the turn again that was interrupted",
      Effect.gen(function* () {
        const result = yield* Agent.resume(written.plain, { threadId: "partial" })
        assert.deepStrictEqual(texts(result.messages, "ai"), ["Once upon a time."])
      }).pipe(Effect.provide(script(["Once upon a time."])))
    ],

    streaming: [
      "has what was said of the turn, and asks for it again",
      Effect.gen(function* () {
        const [, cut] = (yield* SessionStore.checkpoint("streaming"))?.messages ?? []
        assert.isTrue(Message.isPartial(cut) && Message.text(cut) === "Once upon a")
        const result = yield* Agent.resume(written.plain, { threadId: "streaming" })
        assert.deepStrictEqual(texts(result.messages, "ai"), ["Once upon a time."])
      }).pipe(Effect.provide(script(["Once upon a time."])))
    ],

    compacted: [
      "shows the model its summary, and keeps the transcript whole",
      Effect.gen(function* () {
        const result = yield* Agent.run(written.forgetful, "five", { threadId: "compacted" })
        assert.deepStrictEqual(texts(result.messages, "human").slice(0, 4), ["one", "two", "three", "four"])
        const shown = JSON.stringify(
          (yield* TestChatModel.requests).find(({ purpose }) => purpose === "turn")?.messages
        )
        assert.include(shown, "They looked things up.")
      }).pipe(Effect.provide(reactive(({ purpose }) => (purpose === "summary" ? "They looked things up." : "done"))))
    ],

    branched: [
      "has its metadata, its label and the branch that was left",
      Effect.gen(function* () {
        const store = yield* SessionStore.SessionStore
        assert.deepInclude(yield* store.info("branched"), { archived: true, metadata: { user: "ada", done: true } })
        yield* store.unarchive("branched")
        const leftLabel = (yield* store.labels("branched")).get("left") ?? assert.fail("no label")
        assert.deepStrictEqual(texts((yield* SessionStore.checkpoint("branched"))?.messages ?? [], "ai"), ["Right."])
        yield* store.rewind("branched", leftLabel)
        const result = yield* Agent.run(written.plain, "Back?", { threadId: "branched" })
        assert.deepStrictEqual(texts(result.messages, "ai"), ["Left.", "Back."])
      }).pipe(Effect.provide(script(["Back."])))
    ],

    inside: [
      "goes on in the sub-agent that waits, and does not begin it anew",
      Effect.gen(function* () {
        const { paid, pay } = till()
        const result = yield* Agent.resume(written.lead(pay), yield* approved("inside", "pay"))
        assert.deepStrictEqual([paid.length, result.text], [1, "all done"])
        assert.deepStrictEqual(texts(result.messages, "tool"), ["worker done"])
      }).pipe(Effect.provide(script(["worker done", "all done"])))
    ],

    nested: [
      "goes on in the sub-agent, which says that the outcome of its payment is not known",
      Effect.gen(function* () {
        const { paid, pay } = till()
        const result = yield* Agent.resume(written.trusting(pay), { threadId: "nested" })
        const [first] = yield* TestChatModel.requests
        assert.match(texts(first?.messages ?? [], "tool").join(), /price is found.*not known/s)
        assert.deepStrictEqual([paid, texts(result.messages, "tool")], [[], ["I do not know"]])
      }).pipe(Effect.provide(script(["I do not know", "Nobody knows"])))
    ],

    asked: [
      "takes the answer that it waits for, and does nothing again before it",
      Effect.gen(function* () {
        const searched: Array<string> = []
        const agent = written.booker(Effect.sync(() => (searched.push("F2"), "F2")))
        const [question] = yield* pendingOf("asked")
        const decisions = [Approval.respond(question ?? assert.fail("nothing is asked"), "aisle")]
        const result = yield* Agent.resume(agent, { threadId: "asked", decisions })
        assert.deepStrictEqual(
          texts(result.messages, "tool").map((text) => text.split("\n")[0]),
          ["F1 to Rome is booked, at the aisle"]
        )
        assert.deepStrictEqual(searched, [])
      }).pipe(Effect.provide(script(["It is booked."])))
    ],

    background: [
      "says that a task of a process that is gone does not run any more",
      Effect.gen(function* () {
        const agent = written.absent(reactive(() => "late"))
        const result = yield* Agent.run(agent, "Is it there?", { threadId: "background" })
        const tasks = yield* Effect.fromResult(BackgroundSubagents.tasks(result.state))
        assert.deepStrictEqual(
          tasks.map(({ id, status }) => [id, status]),
          [["task-1", "lost"]]
        )
        assert.include(texts(result.messages, "human").join(), "task-1")
      }).pipe(Effect.provide(script(["It is not."])))
    ],

    attachments: [
      "shows the model what came with the question",
      Effect.gen(function* () {
        yield* Agent.run(written.plain, "And now?", { threadId: "attachments" })
        const [request] = yield* TestChatModel.requests
        const sent = request?.messages.flatMap(({ content }) =>
          content.map((block) => ("source" in block ? block.source.kind : block.type))
        )
        assert.deepStrictEqual(sent, ["text", "base64", "url", "fileId", "text", "base64", "text", "text"])
      }).pipe(Effect.provide(script(["A dog."])))
    ],

    sources: [
      "numbers a new source behind those that it has",
      Effect.gen(function* () {
        const result = yield* Agent.run(written.plain, "By what else?", { threadId: "sources" })
        assert.deepStrictEqual(
          Sources.of(result).map(({ number, source }) => `${number} ${source.title}`),
          ["1 one", "2 two", "3 three"]
        )
      }).pipe(
        Effect.provide(script([TestChatModel.calls([{ name: "lookup", arguments: { key: "three" } }]), "By three."]))
      )
    ]
  }

/** A copy of a version's files: the originals stay unchanged. */
const copyOf = (version: string) =>
  Effect.tap(places.folder, (at) => Effect.sync(() => cpSync(join(corpus, version), at, { recursive: true })))

const jsonlIn = (at: string) =>
  JsonlSessions.layer({ folder: join(at, "jsonl") }).pipe(Layer.provide(NodeServices.layer))

/** A store with a thread of a version by import: of its own export, or of an export made from its files now. */
const imported =
  <E, R>(store: Layer.Layer<SessionStore.SessionStore, E, R>) =>
  (at: string, threadId: string) => {
    const file = join(at, "export", `${threadId}.jsonl`)
    const lines = existsSync(file)
      ? Stream.fromIterable(readFileSync(file, "utf8").split("\n"))
      : Stream.unwrap(SessionStore.SessionStore.use((from) => Effect.sync(() => from.export(threadId)))).pipe(
          Stream.provide(jsonlIn(at))
        )
    const taken = SessionStore.SessionStore.use(({ import: take }) => take(lines))
    return Layer.effectDiscard(taken).pipe(Layer.provideMerge(store))
  }

type On<R> = (at: string, threadId: string) => Layer.Layer<SessionStore.SessionStore, unknown, R>

/** Every thread of every version. */
const threads = readdirSync(corpus).flatMap((version) =>
  readdirSync(join(corpus, version, "jsonl")).map((file) => ({ version, threadId: file.slice(0, file.indexOf(".")) }))
)

/** Half of them, for the second store that has them as files. */
const others = threads.filter((_, index) => index % 2 === 1)

/** Some of them, for a store that has them by import: another kind of each version. */
const imports = isFull ? threads : threads.filter((_, index) => index % 7 === 0)

/** Holds threads to their truth, in one store. */
const hold = <R>(
  on: On<R>,
  test: (title: string, body: () => Effect.Effect<unknown, unknown, R>) => void,
  held = imports
) => {
  for (const { threadId, version } of held) {
    const [title, check] = truths[threadId] ?? ["is known to this test", Effect.die(`nothing is known of ${threadId}`)]
    test(`${version}: ${threadId} ${title}`, () =>
      Effect.gen(function* () {
        const store = on(yield* copyOf(version), threadId)
        const journaled = SessionStore.journal.pipe(Layer.provideMerge(store))
        yield* Effect.provide(check, Layer.mergeAll(journaled, MemoryBackend.layer(), BackgroundTasks.layer()))
      }).pipe(Effect.scoped))
  }
}

describe("threads of earlier versions in JSONL files", () => hold(jsonlIn, it.live, threads))

describe("threads of earlier versions in an SQLite file", () =>
  hold((at) => SqliteSessions.layer({ file: join(at, "threads.db") }), it.live, isFull ? threads : others))

describe("threads of earlier versions, imported into memory", () => hold(imported(MemorySessions.layer), it.live))

const servers = { timeout: 60_000, excludeTestServices: true }

layer(places.Postgres.layer, servers)("threads of earlier versions, imported into Postgres", (it) =>
  hold(imported(Layer.unwrap(Effect.map(places.postgres.place, places.postgres.layer))), it.effect)
)

describe.skipIf(!hasRedis)("on Redis", () => {
  layer(places.RedisServer.layer, servers)("threads of earlier versions, imported into Redis", (it) =>
    hold(imported(Layer.unwrap(Effect.map(places.redis.place, places.redis.layer))), it.effect)
  )
})

const { version: present } = JSON.parse(readFileSync(join(import.meta.dirname, "..", "..", "package.json"), "utf8"))

/** The versions that wrote down their format, which the first did not. */
const formats = readdirSync(corpus).flatMap((version): ReadonlyArray<readonly [version: string, format: Format]> => {
  const file = join(corpus, version, "format.json")
  return existsSync(file) ? [[version, JSON.parse(readFileSync(file, "utf8"))]] : []
})

describe("the format of threads", () => {
  it.live(
    `is one that test/sessions/corpus has of version ${present}: if not, npm run corpus, and commit its folder`,
    () =>
      Effect.gen(function* () {
        const at = yield* places.folder
        yield* written.writeInto(at)
        const found: Format = JSON.parse(JSON.stringify(formatOf(at)))
        const own = formats.filter(([version]) => version === present || version.startsWith(`${present}-`))
        const isKept = own.some(([, format]) => isDeepStrictEqual(format, found))
        if (!isKept) assert.deepStrictEqual(found, own.at(-1)?.[1])
      }).pipe(Effect.scoped)
  )

  it("has a number of its own in every version that writes another one", () => {
    const release = (version: string) => version.split("-")[0]
    for (const [version, format] of formats) {
      for (const [other, before] of formats) {
        if (release(version) === release(other) || format.v !== before.v) continue
        assert.deepStrictEqual(format.records, before.records, `${other} and ${version} are both of format ${format.v}`)
      }
    }
  })

  for (const [version, format] of formats) {
    for (const [name, schema] of Object.entries(records)) {
      it(`reads every ${name} that ${version} can have written`, () => {
        const decode = Schema.decodeUnknownSync(schema)
        fc.assert(
          fc.property(encodings(format, name), (encoded) => void decode(encoded)),
          { numRuns: scaled(400) }
        )
      })
    }
  }
})
