/** Asks the person at an editor about what a folder brings. */
import * as Effect from "effect/Effect"
import type * as AcpServer from "../../../acp/AcpServer.ts"
import { cut } from "../../../support/text/text.ts"
import { escaped } from "../../../support/text/untrusted.ts"
import { findItems } from "../config/items.ts"
import type { Places } from "../config/places.ts"
import { answer, statesOf } from "../config/trust.ts"
import { linesOf, rowOf } from "../work/trusting.ts"

/** The lines of all items, as far as an editor shows them. */
const most = 20_000

/** Asks about the items that nobody decided on. Tells whether they are trusted now. */
export const askTrust = Effect.fnUntraced(function* (places: Places, ask: AcpServer.Ask) {
  const states = yield* statesOf(places, yield* findItems(places.project))
  const open = states.filter(
    ({ item, state }) => (state === "new" || state === "changed") && item.problem === undefined
  )
  if (open.length === 0) return false
  const sections = open.map((one) => {
    const text = linesOf(one).map((line) => `    ${line}`)
    return [`**${rowOf(one).map(escaped).join(" · ")}**`, "", ...text].join("\n")
  })
  const choice = yield* ask({
    title: `Trust ${open.length === 1 ? "an item" : `${open.length} items`} of this folder?`,
    text: cut(`The files of this folder would have an agent follow or run:\n\n${sections.join("\n\n")}`, most),
    options: [
      { id: "later", name: "Not now", kind: "reject_once" },
      { id: "trust", name: "Trust them as they are now", kind: "allow_always" },
      { id: "never", name: "No, and ask again only when they change", kind: "reject_always" }
    ]
  })
  if (choice !== "trust" && choice !== "never") return false
  yield* answer(
    places,
    open.map(({ item }) => item),
    choice === "trust"
  )
  return choice === "trust"
})
