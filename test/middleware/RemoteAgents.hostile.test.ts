import { assert, describe, it } from "@effect/vitest"
import { Effect, Redacted, Tracer } from "effect"
import { Agent } from "effect-deepagents"
import { BackgroundTasks } from "effect-deepagents/middleware"
import { TestChatModel } from "effect-deepagents/testing"
import { HttpClient } from "effect/http"
import { makeSpanRecorder } from "../spans.ts"
import { answers, check, script, start, statuses } from "./BackgroundSubagents.fixtures.ts"
import { analyst, live, over, remoteLead, makeAnswer, type Server, toldOf, until } from "./RemoteAgents.fixtures.ts"
import { server } from "./RemoteAgents.server.ts"

const { calls } = TestChatModel

describe("RemoteAgents with servers that mean harm, or are broken", () => {
  const key = "sk-very-secret-0123456789"
  const headers = { "x-api-key": Redacted.make(key) }

  it.live(
    "an answer that can't be used when a task begins is told to the model, quotes nothing, and leaves no task",
    () =>
      Effect.gen(function* () {
        const there = yield* server
        const wrong: ReadonlyArray<readonly [string, Parameters<Server["answerBy"]>[0], string]> = [
          ["500", () => there.json(500, { detail: key }), "status 500"],
          ["401", () => there.json(401, { detail: key }), "credentials"],
          ["not JSON", () => (_, response) => void response.end(`<html>${key}`), "not of the form"],
          ["another form", () => there.json(200, { thread_id: 7, key }), "not of the form"],
          ["a path as an id", () => there.json(200, { thread_id: "../../admin" }), "not of the form"],
          ["dots as an id", () => there.json(200, { thread_id: ".." }), "not of the form"],
          ["no answer", () => () => {}, "did not answer in 0.2 seconds"],
          ["hangs up", () => (_, response) => void response.destroy(), "can't be reached"],
          [
            "endless",
            () => (_, response) => {
              const more = () => {
                if (!response.destroyed) response.write("x".repeat(64 * 1024), () => setImmediate(more))
              }
              more()
            },
            "larger than 100000 bytes"
          ]
        ]
        for (const [what, answer, expected] of wrong) {
          there.answerBy(answer)
          const before = there.requests.length
          const { ended, left, told } = yield* toldOf(
            analyst(there, { headers, timeout: "200 millis", maxBytes: 100_000 })
          )
          assert.isUndefined(ended, what)
          assert.strictEqual(left, 0, what)
          assert.include(told, expected, what)
          assert.notInclude(told, key, what)
          assert.notInclude(told, "127.0.0.1", what)
          assert.strictEqual(there.requests.length, before + 1, what)
        }
      }).pipe(Effect.provide(live))
  )

  it.live("keys are in no span, also where headers are", () =>
    Effect.gen(function* () {
      const there = yield* server
      const { spans, tracer } = makeSpanRecorder()
      yield* Effect.provideService(
        toldOf(
          analyst(there, { headers: { "X-Company-Key": Redacted.make(key), "x-tenant": "ada" } }),
          Effect.sync(() => there.finish(makeAnswer("ok")))
        ),
        Tracer.Tracer,
        tracer
      ).pipe(Effect.provideService(HttpClient.TracerHeaderFilter, () => true))
      assert.strictEqual(there.requests[0]?.headers["x-company-key"], key)
      const told = JSON.stringify(spans.map((span) => [...span.attributes]))
      assert.include(told, "ada")
      assert.notInclude(told, key)
    }).pipe(Effect.provide(live))
  )

  it.live("a redirect is not followed: the keys go nowhere else", () =>
    Effect.gen(function* () {
      const there = yield* server
      const elsewhere = yield* server
      there.answerBy(() => (_, response) => {
        response.writeHead(307, { location: `${elsewhere.url}/threads` })
        response.end()
      })
      const { told } = yield* toldOf(analyst(there, { headers }))
      assert.include(told, "status 307: it redirects")
      assert.strictEqual(elsewhere.requests.length, 0)
    }).pipe(Effect.provide(live))
  )

  it.live("asks an unreachable server again; a task of a server that stays away is lost", () =>
    Effect.gen(function* () {
      const there = yield* server
      let failures = 0
      const passing = yield* toldOf(
        analyst(there),
        Effect.sync(() => {
          there.finish(makeAnswer("back again"))
          there.answerBy(({ method }) => (method === "GET" && failures++ < 5 ? there.json(503, {}) : undefined))
        })
      )
      assert.deepInclude(passing.ended, { status: "completed", text: "back again" })
      const away = yield* server
      const lost = yield* toldOf(
        analyst(away),
        Effect.sync(() => {
          away.finish(makeAnswer("too late"))
          away.answerBy(() => away.json(500, { detail: key }))
        })
      )
      assert.strictEqual(lost.ended?.status, "lost")
      assert.include(lost.ended?.text, "status 500")
    }).pipe(Effect.provide(live))
  )

  it.live("a lost task is looked at once more by check_task", () =>
    Effect.gen(function* () {
      const there = yield* server
      const agent = remoteLead(analyst(there))
      const first = yield* Agent.run(agent, "one")
      there.finish(makeAnswer("in the end"))
      there.answerBy(() => there.json(502, {}))
      yield* over
      const second = yield* Agent.run(agent, "two", { history: first.messages, state: first.state })
      assert.deepStrictEqual(statuses(second), ["task-1:lost"])
      there.answerBy(undefined)
      const third = yield* Agent.run(agent, "three", { history: second.messages, state: second.state })
      assert.include(answers(third.messages)[1], "task-1 (analyst): completed\n\nin the end")
    }).pipe(
      Effect.provide([
        live,
        BackgroundTasks.layer(),
        script([calls([start("analyst", "count")]), "begun", "lost", calls([check("task-1")]), "done"])
      ])
    )
  )

  it.live("fails the task for a final answer that is too large or malformed, with any content", () =>
    Effect.gen(function* () {
      for (const [body, expected] of [
        [{ values: { messages: [makeAnswer("x".repeat(200_000))] } }, "larger than 100000 bytes"],
        ["[[[[", "not of the form"],
        [{ run_id: "run-2", status: "pwned" }, "not of the form"]
      ] as const) {
        const there = yield* server
        const { ended } = yield* toldOf(
          analyst(there, { maxBytes: 100_000 }),
          Effect.sync(() => {
            there.finish(undefined)
            const isThread = typeof body === "object" && "values" in body
            there.answerBy(({ method, path }) =>
              method === "GET" && path.includes("/runs/") !== isThread ? there.json(200, body) : undefined
            )
          })
        )
        assert.strictEqual(ended?.status, "failed")
        assert.include(ended?.text, expected)
      }
    }).pipe(Effect.provide(live))
  )

  it.live("cuts an agent's words to size, and removes invisible characters", () =>
    Effect.gen(function* () {
      const there = yield* server
      const { ended } = yield* toldOf(
        analyst(there),
        Effect.sync(() => there.finish(makeAnswer(`\u202Eevil\u0007${"x".repeat(100_000)}`)))
      )
      assert.isAtMost(ended?.text.length ?? 0, 20_100)
      assert.isTrue(ended?.text.startsWith("evilx"))
      const talking = yield* server
      const whole = yield* toldOf(
        analyst(talking),
        Effect.sync(() => {
          talking.threads
            .get("thread-1")
            ?.messages.push(makeAnswer("the answer"), { type: "tool", content: "a result" })
          talking.finish(makeAnswer(""))
        })
      )
      assert.strictEqual(whole.ended?.text, "the answer")
      const silent = yield* server
      const nothing = yield* toldOf(
        analyst(silent),
        Effect.sync(() => {
          // What was said before the question is no answer to it.
          silent.threads.get("thread-1")?.messages.unshift(makeAnswer("an earlier answer"))
          silent.finish({ type: "tool", content: "not an answer" })
        })
      )
      assert.strictEqual(nothing.ended?.text, "The agent ended without an answer.")
    }).pipe(Effect.provide(live))
  )

  it.live("interrupting a run that begins a task closes the connection; so does closing the supervisor", () =>
    Effect.gen(function* () {
      const there = yield* server
      there.answerBy(() => () => {})
      yield* Agent.run(remoteLead(analyst(there)), "one").pipe(
        Effect.raceFirst(until("a request", () => there.requests.length === 1)),
        Effect.provide([BackgroundTasks.layer(), script([calls([start("analyst", "count")])])])
      )
      yield* until("a closed connection", () => there.requests[0]?.closed === true)

      there.answerBy(({ method }) => (method === "GET" ? () => {} : undefined))
      yield* Effect.gen(function* () {
        yield* Agent.run(remoteLead(analyst(there)), "one")
        yield* until("a look", () => there.requests.at(-1)?.method === "GET")
      }).pipe(Effect.provide([BackgroundTasks.layer(), script([calls([start("analyst", "count")]), "begun"])]))
      yield* until("a closed connection", () => there.requests.at(-1)?.closed === true)
      assert.isFalse(there.requests.some(({ path }) => path.includes("cancel")))
    }).pipe(Effect.provide(live))
  )

  it.live("refuses an invalid address, or one of a file, without a request", () =>
    Effect.gen(function* () {
      for (const url of ["nonsense", "file:///etc/passwd", "ftp://127.0.0.1/"]) {
        const { told } = yield* toldOf(analyst({ url }))
        assert.include(told, "not one of a server", url)
      }
    }).pipe(Effect.provide(live))
  )
})
