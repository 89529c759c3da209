/** `/permissions`: the rules for calls with their origin, and the approvals for good, which it takes back. */
import * as Effect from "effect/Effect"
import { cleanLine } from "../../../support/text/clean.ts"
import { describeWithOrigin } from "../approvals/learned.ts"
import { isOpening, type Permission } from "../approvals/permission.ts"
import type { Permits } from "../approvals/permits.ts"
import { problem, type Room } from "../chat/room.ts"

const words = { refuse: "never", ask: "asks", allow: "allowed" } as const

const code = (text: string): string => `\`${cleanLine(text).replaceAll("`", "'")}\``

const describe = (permission: Permission): string => {
  const { from, ruling, text, where } = permission
  const place = from === "flag" ? `a flag (${where})` : `${from} (${cleanLine(where)})`
  return `- ${words[ruling]}: ${code(text)}, by the ${place}${isOpening(permission) ? ": **anything may run by it**" : ""}`
}

const describeIsolated = ({ holdsHome, restrictsFiles }: Permits): string =>
  holdsHome()
    ? "A folder of the agent holds your home, or the program's own files, by which programs start: in `auto-edit`, commands ask, and so do changes of hidden files of the home."
    : restrictsFiles
      ? "Rules refuse or ask about files, and commands would go around them: in `auto-edit`, commands ask."
      : "In `auto-edit`, commands that nobody approved run isolated, without a question: in the folder, without network and home. What needs more asks."

/** The rules in the order in which they decide. */
const orders = ["refuse", "ask", "allow"] as const

export const changePermissions = Effect.fnUntraced(function* <E, R>({ desk, ui }: Room<E, R>, argument: string) {
  const { permits } = desk
  const dropped = /^\s*drop\s+(\d+)\s*$/.exec(argument)?.[1]
  if (dropped !== undefined) {
    const learned = desk.drop(Number(dropped) - 1)
    if (learned === undefined) return yield* Effect.fail(problem(`There is no approval ${dropped}.`))
    return ui.note("info", `no longer approved: ${describeWithOrigin(learned, permits)}`)
  }
  if (argument.trim() !== "") return yield* Effect.fail(problem("Write /permissions, or /permissions drop 1."))
  const rules = orders.flatMap((ruling) => permits.permissions.filter((one) => one.ruling === ruling))
  const learned = desk.learned()
  ui.show(
    [
      rules.length === 0 ? "There are no rules in settings or flags." : rules.map(describe).join("\n"),
      "Commands that only read files of the folder are free.",
      ...(permits.containment === "unapproved" ? [describeIsolated(permits)] : []),
      learned.length === 0
        ? "Nothing is approved for good."
        : `${learned.map((one, index) => `${index + 1}. ${describeWithOrigin(one, permits)}`).join("\n")}\n\n\`/permissions drop 1\` takes one back.`
    ].join("\n\n")
  )
})
