/** The menus below the draft, and the earlier inputs. */
import { cleanLine } from "../../../../support/text/clean.ts"
import type { Input } from "../../input/input.ts"
import { entryOf, search } from "./fileIndex.ts"
import { type Item, type Menu, pick } from "./menu.ts"

export interface Completion {
  readonly menu: () => Menu | undefined
  readonly set: (menu: Menu | undefined) => void
  /** Offers files for the text behind an `@`, unless the text has changed. */
  readonly offer: (text: string, items: ReadonlyArray<Item>) => void
  readonly changed: () => void
  readonly search: () => void
  readonly remember: (texts: ReadonlyArray<string>) => void
  /** Takes a key of an open menu. */
  readonly key: (data: string) => boolean
}

/** The items that fit a text, the best first. */
const itemsFor = (all: ReadonlyArray<Item>, text: string): ReadonlyArray<Item> => {
  if (text === "") return all
  const byLabel = new Map(all.map((item) => [item.label, item]))
  return search([...byLabel.keys()].map(entryOf), text, all.length).flatMap((label) => byLabel.get(label) ?? [])
}

export const makeCompletion = (options: {
  readonly input: Input
  readonly commands: () => ReadonlyArray<Item>
  readonly submit: (text: string) => void
  readonly onFile: (text: string) => void
  readonly onPick: (value: string | undefined) => void
}): Completion => {
  const { input } = options
  let menu: Menu | undefined
  let history: ReadonlyArray<string> = []

  const textBeforeCursor = (): string => {
    const { column, line, lines } = input.shown()
    return (lines[line] ?? "").slice(0, column)
  }
  const fileText = (): string | undefined => /(?:^|\s)@([^\s@]*)$/.exec(textBeforeCursor())?.[1]

  const commandsFor = (text: string): ReadonlyArray<Item> => {
    const wanted = text.toLowerCase()
    const name = ({ label }: Item): string => label.slice(1).toLowerCase()
    const all = options.commands()
    return [
      ...all.filter((item) => name(item).startsWith(wanted)),
      ...all.filter((item) => !name(item).startsWith(wanted) && name(item).includes(wanted))
    ]
  }
  const search = (): void => {
    const text = input.text().trim().toLowerCase()
    const hits = history.filter((one) => one.toLowerCase().includes(text))
    const items = hits.slice(0, 200).map((one) => ({
      value: one,
      label: cleanLine(one),
      about: "",
      isWhole: true
    }))
    menu = { kind: "history", title: "said before: write to search, Enter takes it, Esc closes", items, at: 0 }
  }
  const changed = (): void => {
    if (menu?.kind === "pick") {
      const { all } = menu
      if (all !== undefined) menu = { ...menu, items: itemsFor(all, input.text().trim()), at: 0 }
      return
    }
    if (menu?.kind === "history") return search()
    const command = input.shown().line === 0 ? /^\/([\w:-]*)$/.exec(textBeforeCursor())?.[1] : undefined
    if (command !== undefined) {
      const items = commandsFor(command)
      menu = items.length === 0 ? undefined : { kind: "command", title: "", items, at: 0 }
      return
    }
    const file = fileText()
    if (file !== undefined) return options.onFile(file)
    menu = undefined
  }
  const picked = (from: Menu, item: Item, isEnter: boolean): void => {
    if (from.kind === "pick") {
      if (from.all !== undefined) input.set("")
      return options.onPick(item.value)
    }
    if (from.kind === "history") input.set(item.value)
    else if (from.kind === "command") {
      // A command without arguments runs when it is chosen.
      const isMeant = isEnter && item.isWhole
      input.set(isMeant ? "" : item.isWhole ? item.value : `${item.value} `)
      if (isMeant) options.submit(item.value)
    } else {
      for (const _ of fileText() ?? "") input.press("\u007f")
      input.insert(`${item.value} `)
    }
  }
  return {
    menu: () => menu,
    set: (next) => {
      menu = next
    },
    offer: (text, items) => {
      if (fileText() !== text || menu?.kind === "pick") return
      menu = items.length === 0 ? undefined : { kind: "file", title: "", items, at: 0 }
    },
    changed,
    search,
    remember: (texts) => {
      for (const text of texts) input.remember(text)
      history = [...new Set([...texts.toReversed(), ...history])]
    },
    key: (data) => {
      const from = menu
      const outcome = from === undefined ? undefined : pick(from, data)
      if (from === undefined || outcome === undefined) return false
      if (outcome._tag === "Moved") menu = outcome.menu
      else {
        menu = undefined
        if (outcome._tag === "Picked") {
          picked(from, outcome.item, outcome.isEnter)
          // The inserted text must not open a menu.
          if (from.kind !== "pick") menu = undefined
        } else if (from.kind === "pick") options.onPick(undefined)
      }
      return true
    }
  }
}
