/** Performs steps with the mouse and the keyboard of a page. */
import type { Page } from "playwright-core"
import type { Point, Step } from "../computer/steps.ts"

/** Milliseconds between a step and the picture after it: pages answer with animations. */
const settling = 300

/** Ends a task in any case, and passes its failure on. */
const ending = async (task: Promise<void>, end: () => Promise<void>): Promise<void> => {
  const failure = await task.then(
    () => undefined,
    (cause: unknown) => ({ cause })
  )
  await end()
  if (failure !== undefined) await Promise.reject(failure.cause)
}

/** Holds keys during a task. Held keys come up in any case, also if a further key is unknown. */
const holding = async (
  page: Page,
  [key, ...others]: ReadonlyArray<string>,
  task: () => Promise<void>
): Promise<void> => {
  if (key === undefined) return task()
  await page.keyboard.down(key)
  return ending(holding(page, others, task), () => page.keyboard.up(key))
}

const moveTo = (page: Page, at: Point | undefined): Promise<void> =>
  at === undefined ? Promise.resolve() : page.mouse.move(at.x, at.y)

const drag = async (page: Page, [from, ...path]: ReadonlyArray<Point>): Promise<void> => {
  // A drag of one place goes from where the mouse is.
  if (path.length > 0) await moveTo(page, from)
  await page.mouse.down()
  const move = async (): Promise<void> => {
    for (const to of path.length > 0 ? path : [from]) {
      if (to !== undefined) await page.mouse.move(to.x, to.y, { steps: 5 })
    }
  }
  await ending(move(), () => page.mouse.up())
}

const perform = async (page: Page, step: Step): Promise<void> => {
  switch (step._tag) {
    case "Click": {
      const { at, button, count, keys } = step
      return holding(page, keys, async () => {
        await moveTo(page, at)
        for (let clicks = 1; clicks <= count; clicks++) {
          await page.mouse.down({ button, clickCount: clicks })
          await page.mouse.up({ button, clickCount: clicks })
        }
      })
    }
    case "Move":
      return moveTo(page, step.at)
    case "Down":
      return page.mouse.down()
    case "Up":
      return page.mouse.up()
    case "Drag":
      return holding(page, step.keys, () => drag(page, step.path))
    case "Scroll":
      await moveTo(page, step.at)
      return page.mouse.wheel(step.dx, step.dy)
    case "Press":
      return holding(page, step.keys, () => page.waitForTimeout(step.seconds * 1_000))
    case "Type":
      return page.keyboard.type(step.text)
    case "Wait":
      return page.waitForTimeout(step.seconds * 1_000)
    case "Look":
      return undefined
  }
}

/** Performs a step, and lets the page settle. */
export const performStep = async (page: Page, step: Step): Promise<void> => {
  await perform(page, step)
  if (step._tag !== "Wait") await page.waitForTimeout(settling)
}
