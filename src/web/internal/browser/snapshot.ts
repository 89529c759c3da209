/** Reads a page as a tree of elements, of which a page with too many shows the first ones. */
import * as Effect from "effect/Effect"
import type { Frame, Page } from "playwright-core"
import type { BrowserError } from "../../Browser.ts"
import { attempt } from "./launch.ts"

/** More elements of a frame are left out: the tree would take seconds, and no model reads it. */
export const mostElements = 5_000

/** Frames that are looked through. */
const mostFrames = 20

const mark = "data-left-out-of-snapshot"

/**
 * Hides the elements behind the first ones, by an attribute and a sheet that no policy of the page forbids. They keep their
 * places: without them the page would be laid out anew.
 */
const hide = `(() => {
  const all = [...document.getElementsByTagName("*")]
  if (all.length <= ${mostElements}) return all.length
  const sheet = new CSSStyleSheet()
  sheet.replaceSync("[${mark}] { visibility: hidden !important }")
  document.adoptedStyleSheets = [...document.adoptedStyleSheets, sheet]
  for (const one of all.slice(${mostElements})) one.setAttribute("${mark}", "")
  return all.length
})()`

const show = `(() => {
  for (const one of document.querySelectorAll("[${mark}]")) one.removeAttribute("${mark}")
  document.adoptedStyleSheets = document.adoptedStyleSheets.filter((one) => !one.cssRules[0]?.cssText.includes("${mark}"))
})()`

const inFrame = (frame: Frame, script: string, timeout: number): Effect.Effect<void> =>
  attempt(() => frame.evaluate<unknown>(script)).pipe(Effect.timeoutOption(timeout), Effect.ignore)

/** Reads the tree of a page, and the number of its elements where they are too many. */
export const readTree = (
  page: Page,
  timeout: number
): Effect.Effect<{ readonly tree: string; readonly elements: number | undefined }, BrowserError> =>
  Effect.gen(function* () {
    const inner = page.frames().slice(1, mostFrames)
    const counted = yield* attempt(() => page.evaluate<unknown>(hide)).pipe(
      Effect.timeoutOption(timeout),
      Effect.map((found) => (found._tag === "Some" ? found.value : undefined)),
      Effect.orElseSucceed(() => undefined)
    )
    yield* Effect.forEach(inner, (frame) => inFrame(frame, hide, timeout), { concurrency: "unbounded", discard: true })
    const tree = yield* attempt(() => page.ariaSnapshot({ mode: "ai", timeout })).pipe(
      Effect.ensuring(
        Effect.forEach([page.mainFrame(), ...inner], (frame) => inFrame(frame, show, timeout), {
          concurrency: "unbounded",
          discard: true
        })
      )
    )
    return { tree, elements: typeof counted === "number" && counted > mostElements ? counted : undefined }
  })
