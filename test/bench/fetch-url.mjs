// Measures what fetch_url costs beside the bare pipeline that it stands on (linkedom, Readability, turndown), for an
// article of 30 kB, in one interleaved run:
//   npm run bench:web
import { Readability } from "@mozilla/readability"
import * as Effect from "effect/Effect"
import * as HttpClient from "effect/http/HttpClient"
import * as HttpClientResponse from "effect/http/HttpClientResponse"
import * as Layer from "effect/Layer"
import { parseHTML } from "linkedom"
import TurndownService from "turndown"
import { Tool } from "../../dist/index.js"
import { FetchUrl, Network } from "../../dist/tools/index.js"
import * as NodeWebReader from "../../dist/tools/NodeWebReader.js"

const budget = 1.2
const rounds = 60
const warmUp = 15

const paragraph = (index) =>
  `<p>Paragraph ${index} has <a href="/page/${index}">a link</a>, <b>some</b> <i>marks</i>, and a sentence that is long enough to be taken for one of an article, as pages have them.</p>`
const list = `<ul>${Array.from({ length: 20 }, (_, index) => `<li>Entry ${index}</li>`).join("")}</ul>`
const article = `<!doctype html><html><head><title>An article</title></head><body><nav>${"<a href='/n'>Nav</a>".repeat(30)}</nav><article><h1>An article</h1>${Array.from({ length: 165 }, (_, index) => paragraph(index)).join("")}${list}</article><script>${"x()\n".repeat(200)}</script></body></html>`

const bare = () => {
  const { document } = parseHTML(article)
  const content = new Readability(document).parse()?.content ?? ""
  return new TurndownService().turndown(content)
}

const server = Layer.succeed(
  HttpClient.HttpClient,
  HttpClient.make((request) =>
    Effect.sync(() =>
      HttpClientResponse.fromWeb(request, new Response(article, { headers: { "content-type": "text/html" } }))
    )
  )
)

const tool = FetchUrl.make()

/** Processor time of the whole process, all threads, in milliseconds; a busy machine makes no difference. */
const timed = (work) =>
  Effect.gen(function* () {
    const wall = performance.now()
    const begin = process.cpuUsage()
    yield* work
    const { system, user } = process.cpuUsage(begin)
    return { cpu: (system + user) / 1000, wall: performance.now() - wall }
  })

const median = (values) => values.toSorted((left, right) => left - right)[Math.floor(values.length / 2)]

const program = Effect.gen(function* () {
  const samples = { bare: [], ours: [] }
  for (let round = 0; round < rounds + warmUp; round++) {
    const one = yield* timed(Effect.sync(bare))
    const other = yield* timed(Tool.run(tool, { url: `https://example.com/${round}` }))
    if (round >= warmUp) {
      samples.bare.push(one)
      samples.ours.push(other)
    }
  }
  console.log(`an article of ${article.length} bytes, medians of ${rounds} interleaved rounds, milliseconds`)
  const of = (read) => [median(samples.bare.map(read)), median(samples.ours.map(read))]
  const tell = (name, [base, ours]) =>
    console.log(
      `${name}: bare pipeline ${base.toFixed(1)}, fetch_url ${ours.toFixed(1)}: ${(ours / base).toFixed(2)} ×`
    )
  tell(
    "waiting",
    of(({ wall }) => wall)
  )
  const cpu = of(({ cpu }) => cpu)
  tell(`processor (budget ${budget} ×)`, cpu)
  if (cpu[1] / cpu[0] > budget) process.exitCode = 1
})

await Effect.runPromise(
  Effect.provide(program, Layer.merge(Layer.provide(Network.layer({}), server), NodeWebReader.layer()))
)
