/** Reads a page as a tree of elements. A large page shows its first elements. */
import * as Effect from "effect/Effect"
import type { Frame, Page } from "playwright-core"
import type { BrowserError } from "../../Browser.ts"
import { attempt } from "./launch.ts"

/** Maximum number of elements of a frame. A larger tree would take seconds. */
export const maxElements = 5_000

/** Maximum number of frames. */
const maxFrames = 20

const mark = "data-left-out-of-snapshot"

/** Hides the elements after the maximum by a style sheet, so that they keep their places in the layout. */
const hide = `(() => {
  const all = [...document.getElementsByTagName("*")]
  if (all.length <= ${maxElements}) return all.length
  const sheet = new CSSStyleSheet()
  sheet.replaceSync("[${mark}] { visibility: hidden !important }")
  document.adoptedStyleSheets = [...document.adoptedStyleSheets, sheet]
  for (const one of all.slice(${maxElements})) one.setAttribute("${mark}", "")
  return all.length
})()`

const show = `(() => {
  for (const one of document.querySelectorAll("[${mark}]")) one.removeAttribute("${mark}")
  document.adoptedStyleSheets = document.adoptedStyleSheets.filter((one) => !one.cssRules[0]?.cssText.includes("${mark}"))
})()`

const runInFrame = (frame: Frame, script: string, timeout: number): Effect.Effect<void> =>
  attempt(() => frame.evaluate<unknown>(script)).pipe(Effect.timeoutOption(timeout), Effect.ignore)

/** Reads the tree of a page. `elements` is their number if it exceeds the maximum. */
export const readTree = (
  page: Page,
  timeout: number
): Effect.Effect<{ readonly tree: string; readonly elements: number | undefined }, BrowserError> =>
  Effect.gen(function* () {
    const inner = page.frames().slice(1, maxFrames)
    const counted = yield* attempt(() => page.evaluate<unknown>(hide)).pipe(
      Effect.timeoutOption(timeout),
      Effect.map((count) => (count._tag === "Some" ? count.value : undefined)),
      Effect.orElseSucceed(() => undefined)
    )
    yield* Effect.forEach(inner, (frame) => runInFrame(frame, hide, timeout), {
      concurrency: "unbounded",
      discard: true
    })
    const tree = yield* attempt(() => page.ariaSnapshot({ mode: "ai", timeout })).pipe(
      Effect.ensuring(
        Effect.forEach([page.mainFrame(), ...inner], (frame) => runInFrame(frame, show, timeout), {
          concurrency: "unbounded",
          discard: true
        })
      )
    )
    return { tree, elements: typeof counted === "number" && counted > maxElements ? counted : undefined }
  })
