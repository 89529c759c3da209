/** Calls that a person is asked about by default, by the annotations of their tools. */
import { isAbsolute, normalize } from "node:path"
import type { JsonObject } from "../../../core/Json.ts"
import type { Annotations, Tool } from "../../../core/Tool.ts"
import type * as HumanInTheLoop from "../../../middleware/HumanInTheLoop.ts"
import type { Approvals } from "../config/settings.ts"

type Approval = boolean | HumanInTheLoop.Rule

/**
 * Makes the approvals of these tools. Destructive tools ask, and so do tools with `needsApproval`. Edits ask, except in
 * `notes`, whose changes are asked about later, and in the mode `auto-edit`. Calls that go out ask, as an address can carry text away.
 */
export const approvalsOf = (
  mode: Approvals,
  tools: ReadonlyArray<Pick<Tool, "annotations" | "name">>,
  notes: string
): HumanInTheLoop.Options => ({
  destructive: true,
  tools: Object.fromEntries(
    tools.flatMap(({ annotations, name }): ReadonlyArray<readonly [string, Approval]> => {
      const rule = ruleOf(mode, annotations, notes)
      return rule === undefined ? [] : [[name, rule]]
    })
  )
})

const ruleOf = (
  mode: Approvals,
  { addresses, editsFiles, openWorld }: Annotations,
  notes: string
): Approval | undefined => {
  if (editsFiles === true) return mode === "auto-edit" ? false : { when: isOutside(notes) }
  if (openWorld !== true) return undefined
  // An approval for good covers the hosts of the call. Without a choice of them, it covers the tool.
  return (
    addresses === undefined || { likeness: (args: JsonObject) => addresses.map((at) => hostOf(args[at])).join(" ") }
  )
}

const isOutside =
  (notes: string) =>
  ({ file_path: path }: JsonObject): boolean =>
    typeof path !== "string" || !isAbsolute(path) || !normalize(path).startsWith(`${notes}/`)

const hostOf = (url: unknown): string => (typeof url === "string" ? (URL.parse(url)?.host ?? url) : "")
