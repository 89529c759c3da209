/** Records name the version that they were written in: earlier ones are read, and a later one is refused by both numbers, in any store, before anything of it is lost. */
import { readdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { DatabaseSync } from "node:sqlite"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Stream } from "effect"
import { AgentEvent, Checkpoint, Message, Usage } from "effect-deepagents"
import { JsonlSessions, MemorySessions, SessionStore } from "effect-deepagents/sessions"
import * as SqliteSessions from "effect-deepagents/sessions/SqliteSessions"
import type { InvalidEncoding } from "../../src/core/schema/encoding.ts"
import { makeJournal } from "../../src/sessions/journal.ts"
import { folder } from "./places.ts"

/** Numbers that no version writes, and invalid texts. */
const wrong: ReadonlyArray<unknown> = [undefined, null, 0, -1, 1.5, "1", "", true, [1], { v: 1 }, Number.NaN]

const later = [2, 7, Number.MAX_SAFE_INTEGER]

const said: SessionStore.NewEntry = { id: "e", entry: { _tag: "Message", message: Message.human("hello") } }

const fill = SessionStore.SessionStore.use((store) =>
  Effect.andThen(store.create({ threadId: "t" }), store.append("t", { leaf: null, entries: [said] }))
)

const opened = SessionStore.SessionStore.use((store) => makeJournal(store).open("t"))

const names = (message: string, number: number) => {
  assert.include(message, `version ${number}`)
  assert.include(message, "version 1")
  assert.match(message, /update effect-deepagents/)
}

describe("a record of another version", () => {
  const usage = Usage.make({})
  const values: {
    readonly [what: string]: readonly [
      encoded: unknown,
      decode: (input: unknown) => Effect.Effect<unknown, InvalidEncoding>
    ]
  } = {
    message: [Message.encode(Message.human("a")), Message.decode],
    event: [
      AgentEvent.encode({ _tag: "TextDelta", text: "a", seq: 0, runId: "r", path: ["a"], at: 0 }),
      AgentEvent.decode
    ],
    checkpoint: [Checkpoint.encode({ messages: [Message.human("a")], state: {}, usage, rounds: 0 }), Checkpoint.decode]
  }
  for (const [what, [encoded, decode]] of Object.entries(values)) {
    it.effect(`a ${what} is refused at its version, which is named`, () =>
      Effect.gen(function* () {
        const json = JSON.parse(JSON.stringify(encoded))
        yield* decode(json)
        for (const v of [...later, ...wrong]) {
          const error = yield* Effect.flip(decode({ ...json, v }))
          assert.deepStrictEqual([error.what, error.path, error.expected], [what, "v", "version 1"])
          if (typeof v === "number" && v > 1) assert.include(error.message, `found ${v}`)
          assert.include(error.message, "update this one")
        }
      })
    )
  }

  it.live("an SQLite file reads entries that do not say theirs, and refuses a later one", () =>
    Effect.gen(function* () {
      const file = join(yield* folder, "threads.db")
      const store = SqliteSessions.layer({ file })
      yield* Effect.provide(fill, store)
      const rewrite = (v: string) => {
        const database = new DatabaseSync(file)
        const count = database
          .prepare("UPDATE session_entries SET body = replace(body, ?, '{') WHERE instr(body, ?) = 1")
          .run('{"v":1,', '{"v":1,').changes
        database.prepare('UPDATE session_entries SET body = replace(body, \'{"_tag":"Message"\', ?)').run(v)
        database.close()
        return count
      }
      assert.strictEqual(rewrite('{"_tag":"Message"'), 1, "it says its version")
      assert.strictEqual((yield* Effect.provide(opened, store)).checkpoint?.messages.length, 1)
      rewrite('{"v":7,"_tag":"Message"')
      const error = yield* Effect.flip(Effect.provide(opened, store))
      assert.strictEqual(error.reason._tag, "Corrupt")
      names(error.message, 7)
    }).pipe(Effect.scoped)
  )

  it.live("a JSONL file with a later line is refused, and nothing is added to it", () =>
    Effect.gen(function* () {
      const at = yield* folder
      const store = JsonlSessions.layer({ folder: at }).pipe(Layer.provide(NodeServices.layer))
      yield* Effect.provide(fill, store)
      const file = join(at, readdirSync(at)[0] ?? "")
      const lines = readFileSync(file, "utf8").trimEnd().split("\n")
      const damaged = [lines[0], lines[1]?.replace('"v":1', '"v":7'), ""].join("\n")
      writeFileSync(file, damaged)
      const error = yield* Effect.flip(Effect.provide(opened, store))
      assert.strictEqual(error.reason._tag, "Corrupt")
      names(error.message, 7)
      assert.strictEqual(readFileSync(file, "utf8"), damaged)
    }).pipe(Effect.scoped)
  )

  it.effect("an export with a later line is refused whole", () =>
    Effect.gen(function* () {
      const store = yield* SessionStore.SessionStore
      yield* fill
      const lines = yield* Stream.runCollect(store.export("t"))
      for (const index of lines.keys()) {
        for (const v of later) {
          const others = lines.map((line, at) => (at === index ? line.replace('"v":1', `"v":${v}`) : line))
          const error = yield* Effect.flip(store.import(Stream.fromIterable(others), { threadId: "u" }))
          assert.strictEqual(error.reason._tag, "InvalidEntry")
          names(error.message, v)
        }
      }
      assert.strictEqual((yield* Effect.flip(store.info("u"))).reason._tag, "NotFound")
    }).pipe(Effect.provide(MemorySessions.layer))
  )
})

describe("a record of before there were kept ones", () => {
  const request = {
    id: "r",
    callId: "c",
    path: ["a"],
    toolName: "t",
    arguments: {},
    description: "d",
    allow: [],
    at: 0
  }
  const event = { v: 1, seq: 0, runId: "r", path: ["a"], at: 0 }
  const asked = { callId: "c", toolName: "t", arguments: {}, description: "d" }

  it.effect("a request without its run, and events that do not say which request", () =>
    Effect.gen(function* () {
      const requested = yield* AgentEvent.decode({ ...event, _tag: "ApprovalRequested", ...asked })
      assert.deepInclude(requested, { id: "", allow: [] })
      const resolved = { ...event, _tag: "ApprovalResolved", callId: "c", toolName: "t", decision: "approve" }
      assert.deepInclude(yield* AgentEvent.decode(resolved), { id: "" })
      const turn = Message.ai("", { id: "m", toolCalls: [{ id: "c", name: "t", arguments: {} }] })
      const suspension = { messageId: "m", requests: [request], decisions: [], children: {}, answers: [] }
      const checkpoint = yield* Checkpoint.decode({
        v: 1,
        messages: [Message.encode(Message.human("go")), Message.encode(turn)],
        state: { suspension },
        usage: Usage.make({}),
        rounds: 1
      })
      const pending = yield* Checkpoint.pending(checkpoint)
      assert.deepStrictEqual(pending, [{ ...request, runId: "" }])
    })
  )
})
