/** The chat of `chat.mjs` by Ink: finished blocks are `Static`, text is as it came, a paste is a chip. */
import { Box, render, Static, Text, useInput, usePaste } from "ink"
import { createElement as h, useEffect, useState } from "react"
import { answer } from "./chat.mjs"

const spinner = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"]

const Spinner = () => {
  const [frame, setFrame] = useState(0)
  useEffect(() => {
    const timer = setInterval(() => setFrame((at) => at + 1), 100)
    return () => clearInterval(timer)
  }, [])
  return h(Text, null, `${spinner[frame % spinner.length]} Esc interrupts`)
}

const Chat = () => {
  const [blocks, setBlocks] = useState([])
  const [open, setOpen] = useState("")
  const [draft, setDraft] = useState("")
  const [isBusy, setBusy] = useState(false)
  useInput((input, key) => {
    if (key.ctrl) return setDraft("")
    // Keys that come at once are one input.
    const isSaid = key.return || input.endsWith("\r")
    if (!isSaid) return setDraft((text) => text + input)
    setDraft("")
    void answer(draft + input.trim(), {
      busy: setBusy,
      piece: setOpen,
      block: (text) => {
        setOpen("")
        setBlocks((all) => [...all, { key: all.length, text }])
      }
    })
  })
  usePaste((text) => setDraft(`[paste #1 +${text.split("\n").length} lines]`))
  return h(
    Box,
    { flexDirection: "column" },
    h(Static, { items: blocks, children: ({ key, text }) => h(Text, { key }, text) }),
    open === "" ? null : h(Text, null, open),
    isBusy ? h(Spinner) : null,
    h(Text, null, `› ${draft}`),
    isBusy ? null : h(Text, null, "/ commands")
  )
}

render(h(Chat), { exitOnCtrlC: false })
