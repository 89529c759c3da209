/** The browser of tests of the page. */
import { readFile } from "node:fs/promises"
import { createRequire } from "node:module"
import packaged from "@sparticuz/chromium"
import * as Effect from "effect/Effect"
import { type Browser, chromium, type Page } from "playwright-core"

let launched: Promise<Browser> | undefined

/** One browser for the tests of a file. It runs as root here, and so without its own sandbox. */
const browser = (): Promise<Browser> => {
  launched ??= (async () =>
    chromium.launch({
      executablePath: await packaged.executablePath(),
      args: ["--no-sandbox", "--headless=shell", "--disable-gpu"],
      headless: true
    }))()
  return launched
}

/** Ends it, behind all tests of the file. */
export const closeBrowser = async (): Promise<void> => {
  const started = launched
  launched = undefined
  await (await started)?.close()
}

export interface Look {
  readonly width?: number
  readonly height?: number
  readonly theme?: "dark" | "light"
}

/** Opens an address in a browser of its own, as far as cookies and stores are concerned. */
export const open = (url: string, look: Look = {}) =>
  Effect.map(
    Effect.acquireRelease(
      Effect.promise(async () => {
        const { height = 800, theme = "light", width = 1280 } = look
        const context = await (
          await browser()
        ).newContext({ viewport: { width, height }, colorScheme: theme, reducedMotion: "reduce" })
        const page = await context.newPage()
        page.setDefaultTimeout(30_000)
        await page.goto(url)
        return { context, page }
      }),
      ({ context }) => Effect.promise(() => context.close())
    ),
    ({ page }): Page => page
  )

/** Does steps in a page. */
export const steps = <A>(run: () => Promise<A>): Effect.Effect<A> => Effect.promise(run)

const resolve = createRequire(import.meta.url).resolve

/** Lists the violations of WCAG AA in a page. */
export const findViolations = (page: Page): Effect.Effect<unknown> =>
  steps(async () => {
    const axe = await readFile(resolve("axe-core/axe.min.js"), "utf8")
    // A policy of scripts holds for the page, not for the tools of a developer.
    const session = await page.context().newCDPSession(page)
    await session.send("Runtime.evaluate", { expression: axe })
    return page.evaluate(
      `axe.run({ runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"] }).then(({ violations }) =>
        violations.flatMap(({ id, nodes }) => nodes.map(({ html, failureSummary }) => id + " " + html.slice(0, 160) + " " + failureSummary)))`
    )
  })
