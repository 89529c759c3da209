// Measures frames per second of the page on a thread of 5,000 messages, in Chromium, from the sources:
// node --conditions=@effect-deepagents/source test/bench/page.mjs
// One round scrolls by 120 pixels a frame, the other one shows an answer that comes in pieces, 10 milliseconds apart.
import { loadavg } from "node:os"
import { Effect } from "effect"
import { Message } from "../../src/index.ts"
import { closeBrowser, open } from "../page/browser.ts"
import { framesOf, tellFrames } from "../page/site.ts"

const count = Number(process.env["MESSAGES"] ?? 5_000)
const seconds = Number(process.env["SECONDS"] ?? 5)

const paragraph = "It goes **on** and on, with `code` and a [link](https://example.com). "
const messages = Array.from({ length: count }, (_, index) => ({
  _tag: "MessageAppended",
  message:
    index % 2 === 0
      ? Message.human(`Question ${index}`, { id: `m${index}` })
      : Message.ai(`Answer **${index}**\n\n${paragraph.repeat(index % 12)}`, { id: `m${index}` })
}))

/** Counts the frames of the browser while something happens, and the longest time between two. */
const countFrames = (page, step) =>
  page.evaluate(
    `new Promise((done) => {
      const box = document.querySelector(".scroller")
      const begin = performance.now()
      let [frames, last, longest] = [0, begin, 0]
      const tick = (now) => {
        frames++
        longest = Math.max(longest, now - last)
        last = now
        ${step}
        if (now - begin < ${seconds * 1000}) requestAnimationFrame(tick)
        else done({ perSecond: frames / ((now - begin) / 1000), longest })
      }
      requestAnimationFrame(tick)
    })`
  )

const program = Effect.gen(function* () {
  const frames = framesOf([{ _tag: "RunStarted", agent: "helper" }, ...messages])
  const site = yield* tellFrames(frames)
  const begin = performance.now()
  const page = yield* open(`${site.url}/#/t`)
  yield* Effect.promise(() =>
    page
      .getByText(`Question ${count - 2}`)
      .last()
      .waitFor()
  )
  const opened = performance.now() - begin
  const idle = yield* Effect.promise(() => countFrames(page, ""))
  const scrolled = yield* Effect.promise(() =>
    countFrames(page, "box.scrollTop += box.scrollTop < 200 ? 120 : -120 * (box.scrollTop > 0)")
  )
  yield* Effect.promise(() =>
    page.evaluate(`{ const box = document.querySelector(".scroller"); box.scrollTop = box.scrollHeight }`)
  )
  const pieces = seconds * 100
  const telling = yield* Effect.forkChild(
    Effect.gen(function* () {
      for (let index = 0; index < pieces; index++) {
        site.tell(framesOf([{ _tag: "TextDelta", text: `word ${index} ` }], frames.length + index))
        yield* Effect.sleep("10 millis")
      }
    })
  )
  const streamed = yield* Effect.promise(() => countFrames(page, ""))
  const parts = yield* Effect.promise(() => page.locator(".parts > *").count())
  void telling
  console.table({ idle, scrolled, streamed })
  console.log({ messages: count, opened: Math.round(opened), parts, load: loadavg().map((one) => one.toFixed(1)) })
}).pipe(Effect.scoped, Effect.ensuring(Effect.promise(closeBrowser)))

await Effect.runPromise(program)
