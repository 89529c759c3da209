import { describe, expect, it } from "@effect/vitest"
import { Agent, Message, Usage } from "effect-deepagents"
import { Doctor } from "effect-deepagents/agents"
import { MemorySessions } from "effect-deepagents/sessions"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { cacheUseOf, describeUse } from "../../src/agents/internal/cacheUse.ts"
import * as SessionStore from "../../src/core/SessionStore.ts"

type Stored = SessionStore.StoredEntry

const minute = 60_000
let count = 0
const stored = (at: number, entry: Stored["entry"]): Stored => ({ id: `e${count++}`, parentId: null, at, entry })

const round = (at: number, inputTokens: number, cacheReadTokens: number, model = "m"): Stored =>
  stored(at, {
    _tag: "Message",
    message: Message.ai("x", { model, usage: Usage.make({ inputTokens, outputTokens: 1, cacheReadTokens }) })
  })

const makeBegin = (at: number) => stored(at, { _tag: "RunStarted", runId: "r", agent: "a" })

describe("the use of a provider's cache", () => {
  it("counts what later rounds read of earlier ones", () => {
    const use = cacheUseOf([round(0, 10_000, 0), round(1, 11_000, 10_000), round(2, 12_000, 11_000)])
    expect(use).toEqual({ input: 23_000, read: 21_000, breaks: [] })
    expect(describeUse(use)?.detail).toBe(
      "recent sessions sent the same text again and again, and the provider gave a lower price for 91 % of it"
    )
  })

  it.each([
    ["pause", [round(0, 10_000, 0), round(minute, 10_000, 9_000), round(7 * minute, 11_000, 0)]],
    ["model", [round(0, 10_000, 9_000), round(1, 11_000, 0, "other")]],
    [
      "summary",
      [
        round(0, 90_000, 80_000),
        stored(1, { _tag: "Compaction", tokensBefore: 90_000, tokensAfter: 9_000 }),
        round(2, 9_000, 1_000)
      ]
    ],
    ["run", [round(0, 10_000, 9_000), makeBegin(1), round(2, 11_000, 100)]],
    ["request", [round(0, 10_000, 9_000), round(2, 11_000, 100)]],
    ["none", [round(0, 10_000, 0), round(2, 11_000, 0)]]
  ] as const)("knows what broke it: %s", (name, entries) => {
    const use = cacheUseOf(entries)
    expect(use.breaks).toEqual([name])
    expect(describeUse(use)?.detail).toMatch(/; the rest cost its full price, after .* \(1 ×\)$/)
  })

  it("says nothing of short prompts, and of a first round", () => {
    expect(describeUse(cacheUseOf([round(0, 100, 0), round(1, 200, 0), round(2, 300, 0)]))).toBeUndefined()
    expect(describeUse(cacheUseOf([round(0, 100_000, 0)]))).toBeUndefined()
  })

  it.effect("is in the doctor's report of the threads of a store", () =>
    Effect.gen(function* () {
      const store = yield* SessionStore.SessionStore
      const { threadId } = yield* store.create()
      const entries = [round(0, 10_000, 0), round(1, 11_000, 0)].flatMap(({ entry, id }) =>
        entry._tag === "Label" ? [] : [{ id, entry }]
      )
      yield* store.append(threadId, { leaf: null, entries })
      const agent = Agent.make({ name: "helper", prompt: "You help." })
      const report = yield* Doctor.check(agent, { sessions: Layer.succeed(SessionStore.SessionStore, store) })
      const found = report.findings.find(({ name }) => name === "price of repeated text")
      expect([found?.status, found?.detail]).toEqual([
        "warning",
        "recent sessions sent the same text again and again, and the provider gave a lower price for 0 % of it; the rest cost its full price, after answers of a server that reports no cache (1 ×)"
      ])
      expect(found?.advice).toMatch(/^nothing is broken; to pay less: .*cacheMarks/)
    }).pipe(Effect.provide(MemorySessions.layer))
  )
})
