/** Decodes keys of the terminal. */
import { type KeyId, matchesKey, parseKey } from "@earendil-works/pi-tui/dist/keys.js"
import { type Action, type Bindings, bindings, keyName } from "./bindings.ts"

const isName = (key: string): key is KeyId => keyName.test(key)

const isKey = (data: string, key: string): boolean => isName(key) && matchesKey(data, key)

/** Returns the action bound to a key. */
export const actionOf = (data: string, table: Bindings = bindings): Action | undefined =>
  table.find(({ keys }) => keys.some((key) => isKey(data, key)))?.action

/** The keys of lists and dialogs. */
export type ListKey = "up" | "down" | "enter" | "escape" | "tab" | "backspace" | "space" | "other"

export const pressed = (data: string): ListKey => {
  if (isKey(data, "up") || isKey(data, "ctrl+p")) return "up"
  if (isKey(data, "down") || isKey(data, "ctrl+n")) return "down"
  if (isKey(data, "enter")) return "enter"
  if (isKey(data, "escape")) return "escape"
  if (isKey(data, "tab")) return "tab"
  if (isKey(data, "space")) return "space"
  if (isKey(data, "backspace")) return "backspace"
  return "other"
}

/** Returns the letter of a key without modifiers. */
export const letterOf = (data: string): string | undefined => {
  if (/^[a-z0-9]$/i.test(data)) return data
  const key = parseKey(data)
  const shifted = key === undefined ? undefined : /^shift\+([a-z])$/.exec(key)?.[1]
  if (shifted !== undefined) return shifted.toUpperCase()
  return key !== undefined && /^[a-z0-9]$/.test(key) ? key : undefined
}
