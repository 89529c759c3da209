/** Reads the steps of a model with mouse and keyboard, in the forms of OpenAI and of Claude. */
import { isObject, type JsonObject } from "../../../core/Json.ts"
import { valueAt } from "../../../support/json/valueAt.ts"

/** A place on the screen, in pixels from its upper left corner. */
export interface Point {
  readonly x: number
  readonly y: number
}

/** A mouse button. */
export type Button = "left" | "right" | "middle"

/** One step with mouse or keyboard. `keys` are held meanwhile. Keys have their names in the DOM: `Enter`, `Control`. */
export type Step =
  | {
      readonly _tag: "Click"
      readonly at: Point | undefined
      readonly button: Button
      readonly count: 1 | 2 | 3
      readonly keys: ReadonlyArray<string>
    }
  | { readonly _tag: "Move"; readonly at: Point }
  | { readonly _tag: "Down" | "Up" }
  | { readonly _tag: "Drag"; readonly path: ReadonlyArray<Point>; readonly keys: ReadonlyArray<string> }
  | { readonly _tag: "Scroll"; readonly at: Point | undefined; readonly dx: number; readonly dy: number }
  | { readonly _tag: "Press"; readonly keys: ReadonlyArray<string>; readonly seconds: number }
  | { readonly _tag: "Type"; readonly text: string }
  | { readonly _tag: "Wait"; readonly seconds: number }
  | { readonly _tag: "Look" }

const numberOf = (value: unknown, most: number): number | undefined =>
  typeof value === "number" && Number.isFinite(value) ? Math.min(most, Math.max(-most, value)) : undefined

/** Screens have no more pixels. */
const farthest = 20_000

const textOf = (value: unknown): string => (typeof value === "string" ? value : "")

const listOf = (value: unknown): ReadonlyArray<unknown> => (Array.isArray(value) ? value : [])

const point = (x: unknown, y: unknown): Point | undefined => {
  const [left, top] = [numberOf(x, farthest), numberOf(y, farthest)]
  return left === undefined || top === undefined ? undefined : { x: left, y: top }
}

const pointIn = (value: unknown): Point | undefined => {
  if (isObject(value)) return point(value["x"], value["y"])
  const [x, y] = listOf(value)
  return point(x, y)
}

/** Names of keys that models use, in lower case. */
const keyNames: { readonly [name: string]: string } = {
  alt: "Alt",
  backspace: "Backspace",
  cmd: "Meta",
  control: "Control",
  ctrl: "Control",
  del: "Delete",
  delete: "Delete",
  down: "ArrowDown",
  end: "End",
  enter: "Enter",
  esc: "Escape",
  escape: "Escape",
  home: "Home",
  insert: "Insert",
  left: "ArrowLeft",
  meta: "Meta",
  option: "Alt",
  page_down: "PageDown",
  page_up: "PageUp",
  pagedown: "PageDown",
  pageup: "PageUp",
  return: "Enter",
  right: "ArrowRight",
  shift: "Shift",
  space: "Space",
  super: "Meta",
  tab: "Tab",
  up: "ArrowUp",
  win: "Meta"
}

const arrow = /^arrow(up|down|left|right)$/i

const keyOf = (name: string): string => {
  const plain = name.trim().replace(arrow, "$1")
  const named = valueAt(keyNames, plain.toLowerCase())
  if (named !== undefined) return named
  return /^f\d{1,2}$/i.test(plain) ? plain.toUpperCase() : plain.length === 1 ? plain : name.trim().slice(0, 20)
}

/** Keys of a list, or joined as in `ctrl+shift+t`. The plus sign itself is a key. */
const keysIn = (value: unknown): ReadonlyArray<string> => {
  const names = typeof value === "string" ? value.replace(/\+\+$/, "+plus").split("+") : listOf(value).map(textOf)
  return names
    .filter((name) => name !== "")
    .slice(0, 8)
    .map((name) => (name === "plus" ? "+" : keyOf(name)))
}

const buttons: { readonly [name: string]: Button } = { left: "left", right: "right", wheel: "middle", middle: "middle" }

const clampSeconds = (value: unknown): number => Math.min(30, Math.max(0, numberOf(value, 30) ?? 1))

type Reader = (action: JsonObject) => Step | undefined

const isMissing = (value: unknown): boolean => value === undefined || value === null

/** Reads Claude's place. Without one, an action is done where the mouse is; with a wrong one, it must not be done. */
const whereIn = (coordinate: unknown): { readonly at: Point | undefined } | undefined => {
  const at = pointIn(coordinate)
  return at === undefined && !isMissing(coordinate) ? undefined : { at }
}

const click =
  (button: Button, count: 1 | 2 | 3): Reader =>
  ({ coordinate, text }) => {
    const where = whereIn(coordinate)
    return where && { _tag: "Click", ...where, button, count, keys: keysIn(text) }
  }

const drag = (places: ReadonlyArray<unknown>, keys: unknown): Step | undefined => {
  const path = places.flatMap((place) => pointIn(place) ?? [])
  return path.length === 0 || path.length < places.length ? undefined : { _tag: "Drag", path, keys: keysIn(keys) }
}

const clickAt = ({ keys, x, y }: JsonObject, button: Button, count: 1 | 2): Step | undefined => {
  const at = point(x, y)
  return at && { _tag: "Click", at, button, count, keys: keysIn(keys) }
}

/** OpenAI's actions, by their type. */
const openai: { readonly [type: string]: Reader } = {
  click: (action) => clickAt(action, valueAt(buttons, textOf(action["button"])) ?? "left", 1),
  double_click: (action) => clickAt(action, "left", 2),
  drag: ({ keys, path }) => drag(listOf(path), keys),
  keypress: ({ keys }) => ({ _tag: "Press", keys: keysIn(keys), seconds: 0 }),
  move: ({ x, y }) => {
    const at = point(x, y)
    return at === undefined ? undefined : { _tag: "Move", at }
  },
  screenshot: () => ({ _tag: "Look" }),
  scroll: ({ scroll_x: dx, scroll_y: dy, x, y }) => {
    const at = point(x, y)
    return at && { _tag: "Scroll", at, dx: numberOf(dx, farthest) ?? 0, dy: numberOf(dy, farthest) ?? 0 }
  },
  type: ({ text }) => ({ _tag: "Type", text: textOf(text) }),
  wait: () => ({ _tag: "Wait", seconds: 1 })
}

/** Pixels of one click of a mouse wheel. */
const notch = 100

const directions: { readonly [name: string]: readonly [x: number, y: number] } = {
  up: [0, -1],
  down: [0, 1],
  left: [-1, 0],
  right: [1, 0]
}

/** Claude's actions, by their name. */
const claude: { readonly [action: string]: Reader } = {
  screenshot: () => ({ _tag: "Look" }),
  zoom: () => ({ _tag: "Look" }),
  left_click: click("left", 1),
  right_click: click("right", 1),
  middle_click: click("middle", 1),
  double_click: click("left", 2),
  triple_click: click("left", 3),
  left_mouse_down: () => ({ _tag: "Down" }),
  left_mouse_up: () => ({ _tag: "Up" }),
  mouse_move: ({ coordinate }) => {
    const at = pointIn(coordinate)
    return at === undefined ? undefined : { _tag: "Move", at }
  },
  left_click_drag: ({ coordinate, start_coordinate: start, text }) =>
    drag(isMissing(start) ? [coordinate] : [start, coordinate], text),
  key: ({ text }) => ({ _tag: "Press", keys: keysIn(text), seconds: 0 }),
  hold_key: ({ duration, text }) => ({ _tag: "Press", keys: keysIn(text), seconds: clampSeconds(duration) }),
  type: ({ text }) => ({ _tag: "Type", text: textOf(text) }),
  scroll: ({ coordinate, scroll_amount: amount, scroll_direction: direction }) => {
    const [x, y] = valueAt(directions, textOf(direction)) ?? [0, 0]
    const clicks = numberOf(amount, 100) ?? 3
    const where = whereIn(coordinate)
    return where && { _tag: "Scroll", ...where, dx: x * clicks * notch, dy: y * clicks * notch }
  },
  wait: ({ duration }) => ({ _tag: "Wait", seconds: clampSeconds(duration) })
}

/** Reads an action of either. `undefined` for another kind, and for a wrong place. */
export const stepOf = (action: JsonObject): Step | undefined =>
  typeof action["action"] === "string"
    ? valueAt(claude, action["action"])?.(action)
    : valueAt(openai, textOf(action["type"]))?.(action)
