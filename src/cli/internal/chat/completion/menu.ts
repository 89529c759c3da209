/** The menu below the draft: slash commands, files behind an `@`, earlier inputs. */
import { pressed } from "../../input/keys.ts"
import type { Style } from "../../render/style.ts"

export interface Item {
  /** The text that replaces the typed one. */
  readonly value: string
  readonly label: string
  readonly about: string
  /** True if the item takes no argument. */
  readonly isWhole: boolean
  /** A key that picks the item at once. */
  readonly key?: string | undefined
}

/** An open menu. `from` is the column where the typed text begins. */
export interface Menu {
  readonly kind: "command" | "file" | "history" | "pick"
  readonly title: string
  readonly items: ReadonlyArray<Item>
  /** All items of a menu that the draft searches. */
  readonly all?: ReadonlyArray<Item> | undefined
  readonly at: number
}

const most = 8

export type MenuAction =
  | { readonly _tag: "Moved"; readonly menu: Menu }
  | { readonly _tag: "Picked"; readonly item: Item; readonly isEnter: boolean }
  | { readonly _tag: "Closed" }

/** Applies a key to the menu. Returns `undefined` if the draft should have it. */
export const pick = (menu: Menu, data: string): MenuAction | undefined => {
  const { at, items } = menu
  const key = pressed(data)
  const item = items[at]
  if (key === "escape") return { _tag: "Closed" }
  if (items.length === 0) return undefined
  const keyed = items.find((one) => one.key === data)
  if (keyed !== undefined) return { _tag: "Picked", item: keyed, isEnter: true }
  if (key === "up") return { _tag: "Moved", menu: { ...menu, at: (at - 1 + items.length) % items.length } }
  if (key === "down") return { _tag: "Moved", menu: { ...menu, at: (at + 1) % items.length } }
  if ((key === "enter" || key === "tab") && item !== undefined)
    return { _tag: "Picked", item, isEnter: key === "enter" }
  return undefined
}

export const menuLines = ({ at, items, title }: Menu, style: Style): ReadonlyArray<string> => {
  const first = Math.max(0, Math.min(items.length - most, at - Math.floor(most / 2)))
  const rows = items.slice(first, first + most)
  const widest = Math.max(0, ...rows.map(({ label }) => label.length))
  return [
    ...(title === "" ? [] : [style.dim(title)]),
    ...rows.map(({ about, label }, index) => {
      const isAt = first + index === at
      const name = label.padEnd(Math.min(widest, 30))
      return `${isAt ? style.cyan("›") : " "} ${isAt ? style.bold(name) : name} ${style.dim(about)}`.trimEnd()
    }),
    ...(items.length > rows.length ? [style.dim(`  ${at + 1} of ${items.length}`)] : [])
  ]
}
