/** The chat of `chat.mjs` by pi-tui: its editor, and a Markdown component for each block. */
import { Container, Editor, Loader, Markdown, ProcessTerminal, Text, TuiMainScreen } from "@earendil-works/pi-tui"
import { answer } from "./chat.mjs"

const same = (text) => text
const list = { selectedPrefix: same, selectedText: same, description: same, scrollInfo: same, noMatch: same }
const names = ["heading", "link", "linkUrl", "code", "codeBlock", "codeBlockBorder", "quote", "quoteBorder", "hr"]
const theme = Object.fromEntries(
  [...names, "listBullet", "bold", "italic", "strikethrough", "underline"].map((name) => [name, same])
)

const tui = new TuiMainScreen(new ProcessTerminal())
const blocks = new Container()
const open = new Text("", 0, 0)
const status = new Container()
const editor = new Editor(tui, { borderColor: same, selectList: list })
const hints = new Text("/ commands", 0, 0)
for (const part of [blocks, open, status, editor, hints]) tui.addChild(part)
tui.setFocus(editor)
let loader
editor.onSubmit = (said) => {
  void answer(said, {
    busy: (isBusy) => {
      loader?.stop()
      status.clear()
      hints.setText(isBusy ? "" : "/ commands")
      if (isBusy) status.addChild((loader = new Loader(tui, same, same, "Esc interrupts")))
      tui.requestRender()
    },
    piece: (text) => {
      open.setText(text)
      tui.requestRender()
    },
    block: (text) => {
      open.setText("")
      blocks.addChild(new Markdown(text, 0, 0, theme))
      tui.requestRender()
    }
  })
}
tui.addInputListener((data) => {
  if (data !== "\u0003" && data !== "\u0015") return undefined
  editor.setText("")
  tui.requestRender()
  return { consume: true }
})
tui.start()
