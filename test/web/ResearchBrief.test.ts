import { assert, describe, it } from "@effect/vitest"
import { Agent, Sources } from "effect-deepagents"
import * as NodeNetwork from "effect-deepagents/net/NodeNetwork"
import { TestChatModel } from "effect-deepagents/testing"
import { ResearchBrief, WebReader, WebSearch } from "effect-deepagents/web"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { serve } from "../net/servers.ts"

const site = serve((request, response) => {
  if (request.url === "/broken") response.writeHead(500)
  response.end(`This is ${request.url}`)
})

const reader = Layer.succeed(WebReader.WebReader, {
  read: () => Effect.fail(new WebReader.Unreadable({ message: "not needed" }))
})

const searchOf = (urls: ReadonlyArray<string>, asked: Array<string> = []) =>
  Layer.succeed(WebSearch.WebSearch, {
    search: ({ query }) =>
      Effect.sync(() => {
        asked.push(query)
        return urls.map((url) => ({ title: url.split("/").at(-1) ?? "", url, snippet: "s" }))
      })
  })

/** A model that plays every part by its input. */
const model = TestChatModel.reactive((request) => {
  const prompt = request.systemPrompt
  const asked = JSON.stringify(request.messages)
  if (prompt.includes("two other searches")) return JSON.stringify({ searches: ["other words"] })
  if (prompt.includes("You read one page")) {
    return JSON.stringify({
      relevant: !asked.includes("This is /boring"),
      notes: [`note of ${/This is (\/\w+)/.exec(asked)?.[1] ?? ""}`]
    })
  }
  if (prompt.includes("You compare notes")) return JSON.stringify({ confirmed: ["it is 161 m"], disputed: [] })
  return asked.includes("it is 161 m") || asked.includes("- nothing")
    ? "It is 161 m [1] [3], not 162 m [2], or not [77]."
    : "no notes"
})

const program = ResearchBrief.make()

const run = (
  urls: ReadonlyArray<string>,
  input: Parameters<ReturnType<typeof ResearchBrief.make>["input"]>[0],
  asked?: Array<string>
) =>
  Agent.run(program, program.input(input)).pipe(
    Effect.provide([model, NodeNetwork.layer({ allowPrivate: ["127.0.0.1"] }), reader, searchOf(urls, asked)])
  )

describe("research_brief", () => {
  it.effect("searches, reads the readable pages, compares, and cites only pages that it read", () =>
    Effect.gen(function* () {
      const { seen, url } = yield* site
      const asked: Array<string> = []
      const urls = ["one", "broken", "two", "boring", "five", "six"].map((name) => `${url}/${name}`)
      const result = yield* run(urls, { query: "How tall?", max_sources: 4, deep: true }, asked)
      const { output } = result
      assert.deepStrictEqual(asked, ["How tall?", "other words"])
      assert.deepStrictEqual(seen.map((one) => one.url).toSorted(), ["/boring", "/broken", "/one", "/two"])
      assert.notInclude(output.brief, "[77]")
      assert.deepStrictEqual(
        output.sources.map(({ number, url }) => [number, url]),
        [
          [1, `${url}/one`],
          [3, `${url}/two`]
        ]
      )
      // A page that could not be read has its number in the run, and is not cited.
      assert.include(output.brief, "It is 161 m [1] [3], not 162 m, or not.")
      assert.deepStrictEqual(
        Sources.of(result).map(({ number, source }) => [number, source.url]),
        urls.map((one, index) => [index + 1, one])
      )
    })
  )

  it.effect("says when there is nothing to cite", () =>
    Effect.gen(function* () {
      const { url } = yield* site
      const none = yield* Effect.flip(run([], { query: "q" }))
      assert.match(none.message, /found nothing/)
      const boring = yield* Effect.flip(run([`${url}/boring`], { query: "q" }))
      assert.match(boring.message, /says anything on the question/)
    })
  )
})
