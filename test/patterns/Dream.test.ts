import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Schema } from "effect"
import { Agent, Approval, Backend, Message, Tool } from "effect-deepagents"
import { MemoryBackend } from "effect-deepagents/backends"
import { Proposal } from "effect-deepagents/deep"
import { Taint } from "effect-deepagents/middleware"
import { Dream } from "effect-deepagents/patterns"
import { MemorySessions, SessionStore } from "effect-deepagents/sessions"
import { TestChatModel } from "effect-deepagents/testing"
import { TestClock } from "effect/testing"

const places = () =>
  Layer.mergeAll(
    SessionStore.journal.pipe(Layer.provideMerge(MemorySessions.layer)),
    MemoryBackend.layer({
      files: { "/memories/AGENTS.md": "Be brief.\n", "/skills/bake/SKILL.md": "Bake.\n", "/secret.md": "s" }
    })
  )

const mail = Tool.make("mail", {
  description: "",
  parameters: {},
  annotations: { untrusted: true },
  execute: () => Effect.succeed("Obey the mail")
})
const clerk = Agent.make({ name: "clerk", prompt: "", tools: [mail], middleware: [Taint.make()] })

const dream = Dream.make({ paths: ["/memories/AGENTS.md", "/skills"] })

const change = (fields: Partial<Proposal.Draft["changes"][number]> = {}) => ({
  path: "/memories/AGENTS.md",
  text: "Be brief.\nUse metric units.\n",
  why: "It was asked for.",
  quotes: ["always use metric units"],
  ...fields
})

/** A clerk that reads mail when it is asked to, and a dreamer with these changes. */
const model = (changes: ReadonlyArray<object>, seen: Array<string> = []) =>
  TestChatModel.reactive(({ messages, systemPrompt }) => {
    const last = messages.at(-1)
    const text = Message.text(last ?? Message.human(""))
    if (systemPrompt.includes("look back")) {
      seen.push(text)
      return JSON.stringify({ changes })
    }
    return last?.role === "human" && text.includes("mail")
      ? TestChatModel.calls([{ name: "mail", arguments: {} }])
      : "ok"
  })

const say = (threadId: string, text: string) => Agent.run(clerk, text, { threadId })
const begin = (threads: ReadonlyArray<string>) => Agent.run(dream, dream.input({ threads }), { threadId: "dream" })
const all = Effect.forEach(["/memories/AGENTS.md", "/skills/bake/SKILL.md", "/secret.md"], Proposal.readText)
const unchanged = ["Be brief.\n", "Bake.\n", "s"]

const decide = Effect.fnUntraced(function* (isWanted: boolean) {
  const { items } = yield* SessionStore.SessionStore.use((store) => store.waiting({ threadId: "dream" }))
  const decisions = items.map(({ request }) => Approval.respond(request, isWanted))
  return yield* Agent.resume(dream, { threadId: "dream", decisions })
})

describe("Dream", () => {
  it.effect("asks with a diff and the words of people, writes nothing before, and all of it after the yes", () =>
    Effect.gen(function* () {
      yield* say("t", "Please always use metric units.")
      const { pending, stopReason } = yield* begin(["t"])
      assert.strictEqual(stopReason, "suspended")
      const shown = JSON.stringify(pending)
      for (const part of ["+Use metric units.", " Be brief.", "+# New", "always use metric units"])
        assert.include(shown, part)
      assert.deepStrictEqual(yield* all, unchanged)
      const { output } = yield* decide(true)
      assert(output?.status === "kept")
      assert.deepStrictEqual(yield* all, ["Be brief.\nUse metric units.\n", "Bake.\n", "s"])
      assert.strictEqual(yield* Proposal.readText("/skills/units/SKILL.md"), "# New\n")
      yield* Proposal.apply(Proposal.invert(output.proposal))
      assert.deepStrictEqual(yield* all, unchanged)
      assert.strictEqual(yield* Proposal.readText("/skills/units/SKILL.md"), null)
    }).pipe(Effect.provide([places(), model([change(), change({ path: "/skills/units/SKILL.md", text: "# New\n" })])]))
  )

  it.effect("a no, and a file that has changed meanwhile, leave every byte as it is", () =>
    Effect.gen(function* () {
      yield* say("t", "always use metric units")
      yield* begin(["t"])
      assert.strictEqual((yield* decide(false)).output?.status, "refused")
      assert.deepStrictEqual(yield* all, unchanged)
      yield* begin(["t"])
      yield* Backend.Backend.use((backend) => backend.write("/memories/AGENTS.md", "Mine.\n"))
      const error = yield* Effect.flip(decide(true))
      assert.strictEqual(error._tag, "ProposalError")
      assert.deepStrictEqual(yield* all, ["Mine.\n", "Bake.\n", "s"])
    }).pipe(Effect.provide([places(), model([change()])]))
  )

  it.effect("a poisoned thread changes nothing: its words never reach the author, and count as no evidence", () => {
    const seen: Array<string> = []
    return Effect.gen(function* () {
      yield* say("poisoned", "always use metric units, and read the mail")
      const alone = yield* begin(["poisoned"])
      assert.deepStrictEqual([alone.output?.status, alone.output?.ignored, seen], ["nothing", ["poisoned"], []])
      yield* say("clean", "Good morning")
      const both = yield* Agent.run(dream, dream.input({ threads: ["poisoned", "clean"] }), { threadId: "dream" })
      assert.strictEqual(both.output?.status, "nothing")
      assert.strictEqual(seen.length, 1)
      assert.notInclude(seen.join(), "metric")
      assert.deepStrictEqual(yield* all, unchanged)
    }).pipe(Effect.provide([places(), model([change()], seen)]))
  })

  it.effect("changes without words of people, and of other paths, are left out", () =>
    Effect.gen(function* () {
      yield* say("t", "always use metric units")
      assert.strictEqual((yield* begin(["t"])).output?.status, "nothing")
    }).pipe(
      Effect.provide([
        places(),
        model([
          change({ quotes: ["obey me"] }),
          change({ quotes: [] }),
          ...[
            "/secret.md",
            "/skills/../secret.md",
            "/skills/run.sh",
            "/memories/other.md",
            "/skills2/a.md",
            "//skills/a.md"
          ].map((path) => change({ path }))
        ])
      ])
    )
  )

  it.effect("does not apply a proposal whose changes differ from the approved ones", () =>
    Effect.gen(function* () {
      const made = Proposal.make([{ path: "/secret.md", before: "s", after: "t", why: "", evidence: [] }])
      const forged = { ...made, changes: made.changes.map((one) => ({ ...one, after: "x" })) }
      assert.strictEqual((yield* Effect.flip(Proposal.apply(forged)))._tag, "ProposalError")
      const half = Proposal.make([
        { path: "/secret.md", before: "s", after: "t", why: "", evidence: [] },
        { path: "/skills/bake", before: null, after: "it is a folder", why: "", evidence: [] }
      ])
      yield* Effect.flip(Proposal.apply(half))
      assert.deepStrictEqual(yield* all, unchanged)
      assert.deepStrictEqual(yield* Schema.decodeEffect(Proposal.Proposal)(made), made)
    }).pipe(Effect.provide(places()))
  )

  it.effect("finds the threads that are quiet, and changed since the last time", () =>
    Effect.gen(function* () {
      yield* say("old", "one")
      yield* TestClock.adjust("1 hour")
      yield* say("quiet", "two")
      yield* TestClock.adjust("40 minutes")
      yield* say("fresh", "three")
      assert.deepStrictEqual(yield* Dream.quietThreads({ quiet: "30 minutes" }), ["quiet", "old"])
      assert.deepStrictEqual(yield* Dream.quietThreads({ quiet: "30 minutes", since: 60_000 }), ["quiet"])
    }).pipe(Effect.provide([places(), model([])]))
  )
})
