/** The key bindings of the chat, as one table. */

/** The actions of keys, beside editing. */
export const actions = [
  "queue",
  "interrupt",
  "cancel",
  "leave",
  "search",
  "takeBack",
  "external",
  "output",
  "plan",
  "mode",
  "image",
  "repaint",
  "suspend"
] as const

export type Action = (typeof actions)[number]

interface Binding {
  readonly action: Action
  readonly keys: ReadonlyArray<string>
  readonly does: string
}

export type Bindings = ReadonlyArray<Binding>

/** The default key bindings. */
export const bindings: Bindings = [
  { action: "queue", keys: ["tab", "alt+enter"], does: "while it works: send it after the answer" },
  {
    action: "interrupt",
    keys: ["escape"],
    does: "while it works: interrupt, and keep the answer so far; idle, twice: go back"
  },
  { action: "cancel", keys: ["ctrl+c"], does: "clear the draft, or interrupt; twice on an empty draft: leave" },
  { action: "leave", keys: ["ctrl+d"], does: "leave, on an empty draft" },
  { action: "search", keys: ["ctrl+r"], does: "search your earlier messages" },
  { action: "takeBack", keys: ["alt+up"], does: "take back the last queued message" },
  { action: "external", keys: ["ctrl+g"], does: "edit the draft in $EDITOR" },
  { action: "output", keys: ["ctrl+o"], does: "show all of the last tool's output in a pager" },
  { action: "plan", keys: ["ctrl+t"], does: "show the whole plan, or less of it" },
  { action: "mode", keys: ["shift+tab"], does: "change the mode: ask, auto-edit, plan" },
  { action: "image", keys: ["ctrl+v"], does: "attach the image that is in the clipboard" },
  { action: "repaint", keys: ["ctrl+l"], does: "draw the screen again" },
  { action: "suspend", keys: ["ctrl+z"], does: "suspend the program" }
]

/** The name of a key in the settings: modifiers and key. */
export const keyName =
  /^(?:(?:ctrl|shift|alt|super)\+)*(?:[a-z0-9]|escape|enter|tab|space|backspace|delete|home|end|pageup|pagedown|up|down|left|right|f(?:[1-9]|1[0-2]))$/

/** Replaces default bindings with the person's own. */
export const bindingsWith = (own: { readonly [A in Action]?: ReadonlyArray<string> | undefined }): Bindings =>
  bindings.map((binding) => ({ ...binding, keys: own[binding.action] ?? binding.keys }))

/** Keys outside of the table, for the help text. */
export const others: ReadonlyArray<readonly [keys: string, does: string]> = [
  ["enter", "send; while it works: tell it now"],
  ["shift+enter, ctrl+j, alt+enter, \\ and enter", "a new line"],
  ["up, down", "your earlier messages, on the first or last line"],
  ["y, n, e, a, s", "an approval: yes, no, edit, always for similar calls, always for the tool"]
]
