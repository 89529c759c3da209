/**
 * The conversation: a window of at most 60 parts of a list of any length. Heights of parts are remembered, and what is
 * outside of the window is as high as it was, or as parts of its kind are.
 */
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks"
import type { Item } from "../view/Transcript.ts"
import { type Children, type Element, h } from "./element.ts"
import { drawItem, type Tools } from "./parts.ts"

/** The most parts in the document. */
const most = 60

/** Parts between the edge of the view and the edge of the window, below which the window moves. */
const margin = 8

/** How far from the end, in pixels, a reader is still at the end. */
const near = 60

const guesses: { readonly [Kind in Item["part"]["kind"]]: number } = {
  user: 90,
  text: 70,
  code: 220,
  thinking: 36,
  tool: 40,
  subagent: 40,
  decision: 32,
  note: 32,
  sources: 90,
  turnEnd: 48
}

interface Props {
  readonly items: ReadonlyArray<Item>
  readonly count: number
  readonly tools: Tools
  /** The unfinished end. */
  readonly live: Children
  /** Another thread has other heights. */
  readonly thread: string
}

/** Heights by place, and the distance of a place from the top. */
const makeHeights = () => {
  const heights: Array<number | undefined> = []
  let tops: Array<number> = [0]
  const heightAt = (items: ReadonlyArray<Item>, index: number): number => {
    const item = items[index]
    return heights[index] ?? (item === undefined ? 0 : guesses[item.part.kind])
  }
  return {
    set: (index: number, height: number): boolean => {
      if (heights[index] === height) return false
      heights[index] = height
      tops = tops.slice(0, index + 1)
      return true
    },
    /** Forgets places that are no more: other parts may come there. */
    cut: (count: number): void => {
      if (heights.length > count) heights.length = count
      if (tops.length > count + 1) tops.length = count + 1
    },
    topOf: (items: ReadonlyArray<Item>, index: number): number => {
      for (let at = tops.length; at <= index; at++) tops[at] = (tops[at - 1] ?? 0) + heightAt(items, at - 1)
      return tops[index] ?? 0
    }
  }
}

type Heights = ReturnType<typeof makeHeights>

/** Finds the part at a distance from the top. */
const partAt = (heights: Heights, { count, items }: Props, distance: number): number => {
  let low = 0
  let high = Math.max(0, count - 1)
  while (low < high) {
    const middle = Math.ceil((low + high) / 2)
    if (heights.topOf(items, middle) <= distance) low = middle
    else high = middle - 1
  }
  return low
}

export const Timeline = (props: Props): Element => {
  const { count, items, live, tools } = props
  const scroller = useRef<HTMLDivElement>(null)
  const list = useRef<HTMLDivElement>(null)
  const heights = useRef(makeHeights())
  const isAtEnd = useRef(true)
  const [first, setFirst] = useState(0)
  const [isAway, setIsAway] = useState(false)
  const [, setTurn] = useState(0)
  const latest = useRef(props)
  latest.current = props

  const last = Math.max(0, count - most)
  const from = isAtEnd.current ? last : Math.min(first, last)
  const to = Math.min(count, from + most)
  heights.current.cut(count)

  /** Moves the window if the view comes near to its edge. */
  const move = (): void => {
    const box = scroller.current
    if (box === null) return
    const now = latest.current
    isAtEnd.current = box.scrollHeight - box.scrollTop - box.clientHeight < near
    setIsAway(!isAtEnd.current)
    const top = partAt(heights.current, now, box.scrollTop)
    const bottom = partAt(heights.current, now, box.scrollTop + box.clientHeight)
    const spare = Math.max(0, Math.floor((most - (bottom - top + 1)) / 2))
    setFirst((begin) => {
      const isInside =
        (begin === 0 || top - begin >= margin) && (begin + most >= now.count || begin + most - bottom > margin)
      return isInside ? begin : Math.max(0, Math.min(top - spare, now.count - most))
    })
  }

  /** Measures the parts of the window, and keeps the part in view in its place. */
  const measure = (): void => {
    const box = scroller.current
    const content = list.current
    if (box === null || content === null) return
    const now = latest.current
    const anchor = partAt(heights.current, now, box.scrollTop)
    const before = heights.current.topOf(now.items, anchor)
    let isChanged = false
    for (const element of content.children) {
      if (!(element instanceof HTMLElement)) continue
      const index = Number(element.dataset["key"])
      const height = element.getBoundingClientRect().height
      if (index < now.count && heights.current.set(index, height)) isChanged = true
    }
    if (isAtEnd.current) box.scrollTop = box.scrollHeight
    else if (isChanged) {
      const moved = heights.current.topOf(now.items, anchor) - before
      if (moved !== 0) box.scrollTop += moved
    }
    if (isChanged) setTurn((turn) => turn + 1)
  }

  useLayoutEffect(measure)
  useEffect(() => {
    const content = list.current
    const box = scroller.current
    if (content === null || box === null) return undefined
    const observer = new ResizeObserver(measure)
    observer.observe(content)
    observer.observe(box)
    return () => observer.disconnect()
  }, [])

  const toEnd = (): void => {
    isAtEnd.current = true
    setIsAway(false)
    setTurn((turn) => turn + 1)
  }

  const top = heights.current.topOf(items, from)
  const rest = heights.current.topOf(items, count) - heights.current.topOf(items, to)
  return h(
    "div",
    { class: "timeline" },
    h(
      "div",
      {
        class: "scroller",
        ref: scroller,
        onScroll: move,
        tabIndex: 0,
        role: "log",
        "aria-live": "off",
        "aria-label": "Conversation"
      },
      h("div", { class: "space", style: { height: `${top}px` } }),
      h(
        "div",
        { class: "parts", ref: list },
        items.slice(from, to).map((item) => drawItem(item, tools))
      ),
      h("div", { class: "space", style: { height: `${rest}px` } }),
      h("div", { class: "live" }, live)
    ),
    isAway ? h("button", { type: "button", class: "to-end", onClick: toEnd }, "To the end") : null
  )
}
