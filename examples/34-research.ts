/**
 * Answers a question from the web with numbered sources: a program that searches, reads the pages at once, compares what
 * they say, and cites. The web is a recorded one on loopback, and the model a scripted one, so that no key is needed.
 */
import assert from "node:assert/strict"
import { createServer } from "node:http"
import { NodeRuntime } from "@effect/platform-node"
import { Console, Effect, Layer } from "effect"
import { Agent } from "effect-deepagents"
import * as NodeNetwork from "effect-deepagents/net/NodeNetwork"
import { TestChatModel } from "effect-deepagents/testing"
import { ResearchBrief, WebSearch } from "effect-deepagents/web"
import * as NodeWebReader from "effect-deepagents/web/NodeWebReader"

const article = (title: string, text: string) =>
  `<!doctype html><html><head><title>${title}</title></head><body><nav>Home</nav><article><h1>${title}</h1>${`<p>${text}</p>`.repeat(5)}</article></body></html>`

const recorded: { readonly [path: string]: string } = {
  "/minster": article("Ulm Minster", "The steeple of Ulm Minster is 161.53 metres high. It was finished in 1890."),
  "/towers": article("High churches", "The highest church is Ulm Minster with 161.5 metres, since the year 1890."),
  "/recipes": article("Recipes", "Spätzle are made of flour and eggs.")
}

/** A server of SearXNG's shape and the pages that it finds, in one. */
const web = Effect.acquireRelease(
  Effect.callback<{ readonly url: string; readonly close: () => void }>((resume) => {
    const server = createServer((request, response) => {
      const url = new URL(request.url ?? "/", `http://${request.headers.host ?? "localhost"}`)
      const results = Object.keys(recorded).map((path) => ({ url: `${url.origin}${path}`, title: path, content: "…" }))
      const page = recorded[url.pathname]
      response.writeHead(200, { "content-type": page === undefined ? "application/json" : "text/html" })
      response.end(page ?? JSON.stringify({ results }))
    })
    server.listen(0, "127.0.0.1", () => {
      const address = server.address()
      const port = typeof address === "object" && address !== null ? address.port : 0
      const close = () => {
        server.close()
        server.closeAllConnections()
      }
      resume(Effect.succeed({ url: `http://127.0.0.1:${port}`, close }))
    })
  }),
  ({ close }) => Effect.sync(close)
)

/** Plays the reader, the checker and the writer of the program. */
const model = TestChatModel.reactive(({ messages, systemPrompt }) => {
  const asked = JSON.stringify(messages)
  if (systemPrompt.includes("read one page")) {
    const figures = [...asked.matchAll(/161\.\d+ metres[^.]*|in 1890/g)].map(([figure]) => figure)
    return JSON.stringify({ relevant: figures.length > 0, notes: [...new Set(figures)] })
  }
  if (systemPrompt.includes("compare notes")) {
    return JSON.stringify({ confirmed: ["the height of about 161.5 metres (1, 2)"], disputed: [] })
  }
  return "Ulm Minster is 161.53 metres high [1], and the highest church there is [2]."
})

const research = ResearchBrief.make()

const program = Effect.gen(function* () {
  const { url } = yield* web
  // The rules refuse private hosts; this one server is allowed, and nothing else of this machine.
  const network = NodeNetwork.layer({ allowPrivate: [new URL(url).host] })
  const search = WebSearch.searxng({ apiUrl: url }).pipe(Layer.provide(network))

  const result = yield* Agent.run(research, research.input({ query: "How high is Ulm Minster?", max_sources: 3 })).pipe(
    Effect.provide([network, NodeWebReader.layer(), search])
  )
  yield* Console.log(result.output.brief)
  for (const { number, title, url } of result.output.sources) yield* Console.log(`[${number}] ${title ?? ""}, ${url}`)
  assert.deepEqual(
    result.output.sources.map(({ number, title }) => `${number} ${title ?? ""}`),
    ["1 Ulm Minster", "2 High churches"]
  )
})

NodeRuntime.runMain(program.pipe(Effect.scoped, Effect.provide(model)))
