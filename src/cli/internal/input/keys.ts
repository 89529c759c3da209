/** The keys of the chat, in one table: what they do, and when. */
import { matchesKey, parseKey } from "@earendil-works/pi-tui/dist/keys.js"

/** Something that a key does, beside editing. */
export type Action =
  | "queue"
  | "interrupt"
  | "cancel"
  | "leave"
  | "search"
  | "takeBack"
  | "external"
  | "output"
  | "plan"
  | "mode"
  | "image"
  | "repaint"
  | "suspend"

interface Binding {
  readonly action: Action
  readonly keys: ReadonlyArray<string>
  readonly does: string
}

/** The keys that are bound unless the configuration says otherwise. */
export const bindings: ReadonlyArray<Binding> = [
  { action: "queue", keys: ["tab", "alt+enter"], does: "while it works: say it after the answer" },
  {
    action: "interrupt",
    keys: ["escape"],
    does: "while it works: interrupt, and keep what was said; idle, twice: go back"
  },
  { action: "cancel", keys: ["ctrl+c"], does: "clear the draft, or interrupt; twice on an empty draft: leave" },
  { action: "leave", keys: ["ctrl+d"], does: "leave, on an empty draft" },
  { action: "search", keys: ["ctrl+r"], does: "search what was said before" },
  { action: "takeBack", keys: ["alt+up"], does: "take back what was queued last" },
  { action: "external", keys: ["ctrl+g"], does: "edit the draft in $EDITOR" },
  { action: "output", keys: ["ctrl+o"], does: "show all of the last tool's output in a pager" },
  { action: "plan", keys: ["ctrl+t"], does: "show the whole plan, or less of it" },
  { action: "mode", keys: ["shift+tab"], does: "change the mode: ask, auto-edit, plan" },
  { action: "image", keys: ["ctrl+v"], does: "attach the image that is in the clipboard" },
  { action: "repaint", keys: ["ctrl+l"], does: "draw the screen again" },
  { action: "suspend", keys: ["ctrl+z"], does: "suspend the program" }
]

/** Keys that are not in the table, for people. */
export const others: ReadonlyArray<readonly [keys: string, does: string]> = [
  ["enter", "send; while it works: tell it now"],
  ["shift+enter, ctrl+j, alt+enter, \\ and enter", "a new line"],
  ["up, down", "what was said before, on the first or last line"],
  ["y, n, e, a, s", "an approval: yes, no, edit, always for the like, always for the tool"]
]

/** The names of keys are checked where they are read, so that a misspelt one is no key. */
const isKey = (data: string, key: string): boolean => matchesKey(data, key as Parameters<typeof matchesKey>[1])

/** The action that a key is bound to. */
export const actionOf = (data: string, table: ReadonlyArray<Binding> = bindings): Action | undefined =>
  table.find(({ keys }) => keys.some((key) => isKey(data, key)))?.action

/** Keys that lists and dialogs know. */
export type Pressed = "up" | "down" | "enter" | "escape" | "tab" | "backspace" | "space" | "other"

export const pressed = (data: string): Pressed => {
  if (isKey(data, "up") || isKey(data, "ctrl+p")) return "up"
  if (isKey(data, "down") || isKey(data, "ctrl+n")) return "down"
  if (isKey(data, "enter")) return "enter"
  if (isKey(data, "escape")) return "escape"
  if (isKey(data, "tab")) return "tab"
  if (isKey(data, "space")) return "space"
  if (isKey(data, "backspace")) return "backspace"
  return "other"
}

/** The letter that a key is, if it is one and nothing is held with it. */
export const letterOf = (data: string): string | undefined => {
  if (/^[a-z0-9]$/i.test(data)) return data
  const key = parseKey(data)
  const shifted = key === undefined ? undefined : /^shift\+([a-z])$/.exec(key)?.[1]
  if (shifted !== undefined) return shifted.toUpperCase()
  return key !== undefined && /^[a-z0-9]$/.test(key) ? key : undefined
}
