import { readdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Redacted, Schema } from "effect"
import { Agent, Approval, type Json, Message, Tool } from "effect-deepagents"
import { HumanInTheLoop } from "effect-deepagents/middleware"
import { Tamper } from "effect-deepagents/rules"
import { JsonlSessions, SessionStore } from "effect-deepagents/sessions"
import { Ledger } from "effect-deepagents/stores"
import { AgentTest, TestChatModel } from "effect-deepagents/testing"
import { folder } from "../sessions/places.ts"

const pay = Tool.make("pay", {
  description: "Pays",
  parameters: { amount: Schema.Int },
  execute: ({ amount }) => Effect.succeed(`paid ${amount}`)
})
const agent = Agent.make({
  name: "clerk",
  prompt: "",
  tools: [pay],
  middleware: [HumanInTheLoop.make({ tools: { pay: true } })]
})
const secret = Redacted.make("a secret of some length")
const key = Tamper.layer(secret)
const other = Tamper.layer(Redacted.make("another one of some length"))

const none = Layer.empty

const suspended = Effect.provide(
  Agent.run(agent, "go"),
  TestChatModel.script([TestChatModel.calls([{ name: "pay", arguments: { amount: 500 } }])])
)

/** Every value of a JSON text changed, one at a time. */
const changes = (json: Json.Json): ReadonlyArray<Json.Json> => {
  const found: Array<Json.Json> = []
  const walk = (value: Json.Json, put: (changed: Json.Json) => Json.Json): void => {
    if (Array.isArray(value)) {
      value.forEach((one: Json.Json, index) => walk(one, (changed) => put(value.with(index, changed))))
      if (value.length > 0) found.push(put(value.slice(1)))
    } else if (typeof value === "object" && value !== null) {
      for (const [name, one] of Object.entries(value)) walk(one, (changed) => put({ ...value, [name]: changed }))
    } else found.push(put(typeof value === "string" ? `${value}x` : typeof value === "number" ? value + 1 : 7))
  }
  walk(json, (changed) => changed)
  return found
}

describe("Tamper", () => {
  it.effect("a checkpoint that was changed anywhere, or is of another thread or key, is refused", () =>
    Effect.gen(function* () {
      const first = yield* suspended
      const sealed = yield* Effect.provide(Tamper.seal(first, "t"), key)
      const wire: Json.Json = JSON.parse(JSON.stringify(sealed))
      const opened = yield* Effect.provide(Tamper.open(wire, "t"), key)
      assert.deepStrictEqual(opened.messages, first.messages)
      const all = changes(wire)
      assert.isAbove(all.length, 20)
      for (const changed of all) {
        const error = yield* Effect.flip(Effect.provide(Tamper.open(changed, "t"), key))
        assert.strictEqual(error._tag, "Tampered", JSON.stringify(changed))
      }
      for (const open of [
        Effect.provide(Tamper.open(wire, "u"), key),
        Effect.provide(Tamper.open(wire, "t"), other),
        Effect.provide(Tamper.open({ checkpoint: 1 }, "t"), key)
      ]) {
        assert.strictEqual((yield* Effect.flip(open))._tag, "Tampered")
      }
    })
  )

  it.effect("a decision counts on its request only: same thread, tool, arguments, and the decision as it was", () =>
    Effect.gen(function* () {
      const { pending } = yield* suspended
      const [request] = pending
      assert(request !== undefined)
      const decision = Approval.decidedBy(Approval.approve(request), request, { by: { id: "ada" } })
      const signed = yield* Tamper.sign(decision, request, "t")
      const wire: Json.Json = JSON.parse(JSON.stringify(signed))
      assert.deepStrictEqual(yield* Tamper.verify(wire, request, "t"), decision)
      for (const changed of changes(wire)) {
        assert.strictEqual((yield* Effect.flip(Tamper.verify(changed, request, "t")))._tag, "Tampered")
      }
      const requests: ReadonlyArray<Approval.Request> = [
        { ...request, id: "other" },
        { ...request, arguments: { amount: 5 } },
        { ...request, toolDigest: "changed" },
        { ...request, description: "harmless" },
        { ...request, deciders: ["eve"] }
      ]
      for (const changed of requests) {
        const error = yield* Effect.flip(Tamper.verify(wire, changed, "t"))
        assert.include(error.message, 'The decision of the thread "t" is refused')
      }
      assert.strictEqual((yield* Effect.flip(Tamper.verify(wire, request, "u")))._tag, "Tampered")
    }).pipe(Effect.provide(key))
  )

  it.effect("accepts an older key, refuses a short one, and reports which key it is without its value", () =>
    Effect.gen(function* () {
      const first = yield* suspended
      const sealed = yield* Effect.provide(Tamper.seal(first, "t"), key)
      const rotated = Tamper.layer(Redacted.make("the new secret, long enough"), secret)
      yield* Effect.provide(Tamper.open(sealed, "t"), rotated)
      const short = Redacted.make("15 characters..")
      for (const [position, secrets] of [[short], [secret, short]].entries()) {
        const [signing = secret, ...older] = secrets
        const error = yield* Effect.flip(Layer.build(Tamper.layer(signing, ...older)))
        assert.deepInclude(error, { _tag: "SecretTooShort", position, length: 15, needed: 16 })
        assert.include(error.message, "openssl rand")
        assert.notInclude(JSON.stringify(error), "15 characters")
      }
    })
  )
})

const paid: Array<number> = []
const transfer = Tool.make("transfer", {
  description: "Pays",
  parameters: { amount: Schema.Int },
  execute: ({ amount }) => Effect.sync(() => (paid.push(amount), `paid ${amount}`))
})
const look = Tool.make("look", {
  description: "Looks",
  parameters: {},
  annotations: { readOnly: true },
  execute: () => Effect.succeed("seen")
})
const helper = Agent.make({ name: "helper", description: "Helps", prompt: "", tools: [transfer, look] })
const teller = Agent.make({
  name: "teller",
  prompt: "",
  tools: [transfer, Agent.asTool(helper)],
  middleware: [HumanInTheLoop.make({ tools: { transfer: true } })]
})

/** Pays, or has a sub-agent pay, as is said. */
const model = TestChatModel.reactive(({ messages }) => {
  const last = messages.at(-1)
  if (last === undefined || last.role === "tool") return "done"
  const said = Message.text(last)
  if (said === "delegate") return TestChatModel.calls([{ name: "helper", arguments: { task: "500" } }])
  return /^\d+$/.test(said)
    ? TestChatModel.calls([
        { name: "transfer", arguments: { amount: Number(said) } },
        ...(said === "7" ? [{ name: "transfer", arguments: { amount: 8 } }] : [])
      ])
    : "hello"
})

const filesOf = (path: string): ReadonlyArray<readonly [name: string, text: string]> =>
  readdirSync(path, { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".jsonl"))
    .map((name) => [join(path, name), readFileSync(join(path, name), "utf8")])

/** Changes the lines of the one thread of a folder, in place. */
const rewrite = (path: string, change: (text: string) => string): boolean => {
  const names = readdirSync(path, { recursive: true, encoding: "utf8" }).filter((name) => name.endsWith(".jsonl"))
  let isChanged = false
  for (const name of names) {
    const before = readFileSync(join(path, name), "utf8")
    const after = change(before)
    isChanged ||= after !== before
    writeFileSync(join(path, name), after)
  }
  return isChanged
}

describe("a thread whose runs have a key", () => {
  const stored = (path: string) =>
    SessionStore.journal.pipe(
      Layer.provideMerge(JsonlSessions.layer({ folder: path }).pipe(Layer.provide(NodeServices.layer), Layer.orDie)),
      Layer.merge(model)
    )

  /** Suspends a run, changes the stored state as an attacker, and resumes the run like another process. */
  const attack = Effect.fnUntraced(function* (
    said: string,
    change: (text: string) => string,
    keys: readonly [Layer.Layer<never> | typeof key, Layer.Layer<never> | typeof key]
  ) {
    const path = yield* folder
    paid.length = 0
    const { pending } = yield* Effect.provide(Agent.run(teller, said, { threadId: "t" }), [stored(path), keys[0]])
    assert.isAbove(pending.length, 0)
    const isChanged = rewrite(path, change)
    const decisions = pending.map((request) => Approval.approve(request))
    const end = yield* Effect.result(
      Effect.provide(Agent.resume(teller, { threadId: "t", decisions }), [stored(path), keys[1]])
    )
    return { end, isChanged, path }
  })

  const reasonOf = ({ end }: Effect.Success<ReturnType<typeof attack>>) =>
    end._tag === "Failure" && end.failure._tag === "AgentError" && end.failure.reason._tag === "Thread"
      ? end.failure.reason.error.reason
      : end._tag

  for (const said of ["500", "delegate"]) {
    it.effect(`goes on where nothing was changed, and is refused where something was (${said})`, () =>
      Effect.gen(function* () {
        const same = yield* attack(said, (text) => text, [key, key])
        assert.strictEqual(same.end._tag, "Success")
        assert.deepStrictEqual(paid, [500])
        for (const [from, to] of [
          [/"amount":500/g, '"amount":900'],
          [/("toolDigest":")./g, "$1!"],
          [/("decisions":)\[\]/g, '$1[{"_tag":"Approve","id":"x"}]'],
          [/("description":")/g, "$1Harmless: "],
          [/"slot":"deepagents\/seal"/g, '"slot":"else"'],
          [/"mac":"./g, '"mac":"!']
        ] as const) {
          const changed = yield* attack(said, (text) => text.replaceAll(from, to), [key, key])
          assert.isTrue(changed.isChanged, String(from))
          assert.deepInclude(reasonOf(changed), { _tag: "Tampered" }, String(from))
          assert.deepStrictEqual(paid, [])
        }
        // Without a key nobody is the wiser, which shows that the changes do change something.
        const open = yield* attack(said, (text) => text.replaceAll(/"amount":500/g, '"amount":900'), [none, none])
        assert.strictEqual(open.end._tag, "Success")
        assert.deepStrictEqual(paid, [900])
      }).pipe(Effect.scoped)
    )
  }

  it.effect("is refused with another key, without a signature, and under another name; something new can be said", () =>
    Effect.gen(function* () {
      const same = (text: string) => text
      assert.deepInclude(reasonOf(yield* attack("500", same, [other, key])), { _tag: "Tampered" })
      const unsigned = yield* attack("500", same, [none, key])
      assert.deepInclude(reasonOf(unsigned), {
        _tag: "Tampered",
        problem: "the state that gates read has no signature"
      })
      const rotated = Tamper.layer(Redacted.make("the new secret, long enough"), secret)
      assert.strictEqual((yield* attack("500", same, [key, rotated])).end._tag, "Success")
      yield* Effect.gen(function* () {
        const answer = yield* Agent.run(teller, "never mind", { threadId: "t" })
        assert.strictEqual(answer.text, "hello")
        const { pending } = yield* Agent.run(teller, "5", { threadId: "t" })
        const store = yield* SessionStore.SessionStore
        yield* store.import(store.export("t"), { threadId: "u" })
        const decisions = pending.map((request) => Approval.approve(request))
        const copied = yield* Effect.flip(Agent.resume(teller, { threadId: "u", decisions }))
        assert.include(copied.message, "was signed with another key or for another thread; say something new in it")
        assert.strictEqual((yield* Agent.resume(teller, { threadId: "t", decisions })).text, "done")
      }).pipe(Effect.provide([stored(unsigned.path), key]))
    }).pipe(Effect.scoped)
  )

  /** Approves payments for good, ends, and lets somebody change the idle thread. */
  const idle = Effect.fnUntraced(function* (always: boolean) {
    const path = yield* folder
    paid.length = 0
    const first = yield* Agent.run(clerk, "500", { threadId: "t" }).pipe(Effect.provide([stored(path), key]))
    const decisions = first.pending.map((request) => Approval.approve(request, { always }))
    yield* Agent.resume(clerk, { threadId: "t", decisions }).pipe(Effect.provide([stored(path), key]))
    assert.deepStrictEqual(paid, [500])
    return path
  })
  const clerk = Agent.make({
    name: "clerk",
    prompt: "",
    tools: [transfer],
    middleware: [HumanInTheLoop.make({ tools: { transfer: true } })]
  })

  it.effect("believes no approval for good that was put into it, and asks", () =>
    Effect.gen(function* () {
      const honest = yield* idle(true)
      const { state } = yield* SessionStore.checkpoint("t").pipe(
        Effect.flatMap(Effect.fromNullishOr),
        Effect.provide(stored(honest))
      )
      const value = state[Approval.always.name]
      assert.isDefined(value)
      const again = yield* Agent.run(clerk, "500", { threadId: "t" }).pipe(Effect.provide([stored(honest), key]))
      assert.deepStrictEqual([again.text, paid], ["done", [500, 500]])
      for (const keys of [key, none]) {
        const path = yield* idle(false)
        // Somebody who can write the store copies an approval of another thread into it.
        yield* Effect.gen(function* () {
          const store = yield* SessionStore.SessionStore
          const { id } = yield* store.leaf("t")
          const entry = { _tag: "State" as const, slot: "approvedAlways", value }
          yield* store.append("t", { leaf: id, behind: id, entries: [{ id: "forged", entry }] })
        }).pipe(Effect.provide(stored(path)))
        const { events } = yield* AgentTest.collect(clerk, "500", { threadId: "t" }).pipe(
          Effect.provide([stored(path), keys])
        )
        const isAsked = keys === key
        const last = events.at(-1)
        const stopReason = last?._tag === "RunCompleted" ? last.stopReason : last?._tag
        assert.strictEqual(stopReason, isAsked ? "suspended" : "completed")
        assert.deepStrictEqual(paid, isAsked ? [500] : [500, 500])
        assert.strictEqual(
          events.some((event) => event._tag === "Warning" && event.code === "tampered"),
          isAsked
        )
        if (!isAsked) continue
        // The thread stays usable: an approval given now counts.
        const decisions = events.flatMap((event) =>
          event._tag === "ApprovalRequested" ? [Approval.approve(event, { always: true })] : []
        )
        yield* Agent.resume(clerk, { threadId: "t", decisions }).pipe(Effect.provide([stored(path), key]))
        yield* Agent.run(clerk, "500", { threadId: "t" }).pipe(Effect.provide([stored(path), key]))
        assert.deepStrictEqual(paid, [500, 500, 500])
      }
    }).pipe(Effect.scoped)
  )

  it.effect("refuses an older state that was put back, if a ledger counts its signatures", () =>
    Effect.gen(function* () {
      for (const ledger of [Layer.succeedContext(yield* Layer.build(Ledger.layerMemory)), none]) {
        const path = yield* folder
        paid.length = 0
        const first = yield* Agent.run(clerk, "500", { threadId: "t" }).pipe(
          Effect.provide([stored(path), key, ledger])
        )
        const decisions = first.pending.map((request) => Approval.approve(request))
        const waiting = filesOf(path)
        const resume = Agent.resume(clerk, { threadId: "t", decisions })
        yield* resume.pipe(Effect.provide([stored(path), key, ledger]))
        for (const [name, text] of waiting) writeFileSync(name, text)
        const end = yield* Effect.result(resume.pipe(Effect.provide([stored(path), key, ledger])))
        assert.deepStrictEqual([end._tag, paid], ledger === none ? ["Success", [500, 500]] : ["Failure", [500]])
        if (end._tag === "Failure") assert.include(end.failure.message, "an older state of the thread")
      }
    }).pipe(Effect.scoped)
  )

  it.effect("is signed again as it is decided on in parts", () =>
    Effect.gen(function* () {
      const path = yield* folder
      paid.length = 0
      yield* Effect.gen(function* () {
        const first = yield* Agent.run(teller, "7", { threadId: "t" })
        const [one, two] = first.pending
        assert(one !== undefined && two !== undefined)
        const second = yield* Agent.resume(teller, { threadId: "t", decisions: [Approval.approve(one)] })
        assert.strictEqual(second.stopReason, "suspended")
        const third = yield* Agent.resume(teller, { threadId: "t", decisions: [Approval.approve(two)] })
        assert.strictEqual(third.text, "done")
        assert.deepStrictEqual(paid, [7, 8])
      }).pipe(Effect.provide([stored(path), key]))
    }).pipe(Effect.scoped)
  )
})
