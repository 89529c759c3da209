/** The page in a browser, as one of the clients of a thread. */
import type { Page } from "playwright-core"
import { pause, type Scene } from "./clients.ts"

/** Uses the page as a person does: waits for requests, decides, and loads it anew. */
export const usePage = async (page: Page, scene: Scene, ended: AbortSignal): Promise<void> => {
  const isThere = async () => {
    const headers = { authorization: `Bearer ${scene.token}` }
    const state = await fetch(`${scene.url}/threads/${scene.thread}/state`, { headers }).catch(() => undefined)
    return state?.status === 200
  }
  while (!ended.aborted && !(await isThere())) await pause(20)
  await page.evaluate(`location.hash = "#/${scene.thread}"`)
  const press = (name: string) => page.getByRole("button", { name, exact: true }).first().click({ timeout: 500 })
  while (!ended.aborted) {
    for (let left = scene.patience(); left > 0 && !ended.aborted; left--) {
      // Another client may have decided meanwhile.
      if (scene.approves()) await press("Allow").catch(() => undefined)
      else
        await Promise.resolve(press("Deny"))
          .then(() => press("Deny"))
          .catch(() => undefined)
    }
    // A server that is gone shows no page.
    if (!ended.aborted && (await isThere())) await page.reload().catch(() => undefined)
  }
}

/** The page's texts of the agent, once it has so many. A browser without its server shows no page. */
export const textsOf = async (page: Page, count: number): Promise<ReadonlyArray<string>> => {
  const texts = page.locator(".part.text .prose")
  for (let left = 200; left > 0 && (await texts.count()) !== count; left--) {
    if (left % 40 === 0) await page.reload()
    await pause(100)
  }
  return texts.allInnerTexts()
}
