/** Starts the page. */
import { render } from "preact"
import { App } from "./app.ts"
import { use } from "./element.ts"
import { act, begin, drawBy, get, isWorking, loadThreads, update } from "./state.ts"

const root = document.querySelector("#app")

/** Times on the page go on, and lists change by what others do. */
const second = 1_000
const round = 20

const keepTime = (): void => {
  let seconds = 0
  setInterval(() => {
    if (document.visibilityState !== "visible") return
    const state = get()
    seconds++
    if (isWorking(state) || state.link._tag === "Lost") update({})
    if (seconds % round === 0 && state.access === "open" && state.link._tag !== "Lost") act(loadThreads)
  }, second)
}

/** An image of an answer is shown when a person asks for it. */
const showPictures = (): void => {
  document.addEventListener("click", ({ target }) => {
    const button = target instanceof HTMLElement ? target.closest("button[data-picture]") : null
    const source = button?.getAttribute("data-picture")
    if (button === null || source === null || source === undefined) return
    const image = document.createElement("img")
    image.src = source
    image.alt = button.textContent
    button.replaceWith(image)
  })
}

if (root !== null) {
  begin()
  drawBy((state) => render(use(App, { state }), root))
  keepTime()
  showPictures()
}
