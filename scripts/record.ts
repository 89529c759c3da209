/**
 * Records the program as an animated SVG: it runs in a pseudo-terminal, keys are typed, and what a terminal shows is
 * drawn. `npm run record` writes `docs/chat.svg` of the chat with its scripted model.
 */
import { cpSync, mkdtempSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join, resolve } from "node:path"
import { spawn } from "@lydell/node-pty"
import xterm from "@xterm/headless"

const size = { columns: 90, rows: 28, cell: 8.4, line: 18, pad: 12 } as const
const root = resolve(import.meta.dirname, "..")
const [out = join(root, "docs/chat.svg")] = process.argv.slice(2)

/** What is waited for, what is typed then, and how long the screen is watched after that, in milliseconds. */
const scenes: ReadonlyArray<readonly [wanted: string, keys: string, millis: number]> = [
  ["/ commands", "What is in this folder? Write a report.", 600],
  ["Write a report.", "\r", 2_000],
  ["y yes", "", 2_000],
  ["y yes", "y", 2_000],
  ["/ commands", "", 3_000]
]

const palette = ["#1e1e1e", "#f14c4c", "#23d18b", "#d7ba7d", "#3b8eea", "#d670d6", "#29b8db", "#e5e5e5"]

const escaped = (text: string): string => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;")

/** A line of the screen as spans of one look each. */
const drawn = (line: xterm.IBufferLine): string => {
  let spans = ""
  let text = ""
  let look = ""
  const end = () => {
    if (text.trim() !== "") spans += `<tspan${look}>${escaped(text)}</tspan>`
    else spans += text
    text = ""
  }
  for (let column = 0; column < size.columns; column++) {
    const cell = line.getCell(column)
    if (cell === undefined || cell.getWidth() === 0) continue
    const colour = cell.isFgPalette() ? ` fill="${palette[cell.getFgColor() % 8]}"` : ""
    const next = `${colour}${cell.isBold() ? ' font-weight="bold"' : ""}${cell.isDim() ? ' opacity="0.6"' : ""}`
    if (next !== look) end()
    look = next
    text += cell.getChars() === "" ? " " : cell.getChars()
  }
  text = text.trimEnd()
  end()
  return spans
}

/** A folder to talk about: the examples of this repository. */
const folder = join(mkdtempSync(join(tmpdir(), "demo-")), "examples")
cpSync(join(root, "examples"), folder, { recursive: true })

const terminal = new xterm.Terminal({ cols: size.columns, rows: size.rows, allowProposedApi: true })
const home = mkdtempSync(join(tmpdir(), "deepagents-record-"))
const running = spawn(
  process.execPath,
  [
    "--conditions=@effect-deepagents/source",
    "--disable-warning=ExperimentalWarning",
    join(root, "src/cli/bin.ts"),
    "--demo"
  ],
  {
    cols: size.columns,
    rows: size.rows,
    cwd: folder,
    env: { ...process.env, HOME: home, XDG_DATA_HOME: home, TERM: "xterm-256color" }
  }
)
running.onData((data) => terminal.write(data))
terminal.onData((data) => running.write(data))

const frames: Array<{ readonly at: number; readonly lines: ReadonlyArray<string> }> = []
// The recording begins with the first frame that shows something, so the image is never black.
let began = performance.now()

const watch = setInterval(() => {
  const { active } = terminal.buffer
  const lines = Array.from({ length: size.rows }, (_, row) => {
    const line = active.getLine(active.baseY + row)
    return line === undefined ? "" : drawn(line)
  })
  if (frames.length === 0) {
    if (lines.every((line) => line === "")) return
    began = performance.now()
  }
  if (lines.join("\n") !== frames.at(-1)?.lines.join("\n")) frames.push({ at: performance.now() - began, lines })
}, 120)

const pause = (millis: number) => new Promise((done) => setTimeout(done, millis))

const screen = (): string => {
  const { active } = terminal.buffer
  return Array.from({ length: size.rows }, (_, row) =>
    active.getLine(active.baseY + row)?.translateToString(true)
  ).join("\n")
}

for (const [wanted, keys, millis] of scenes) {
  for (let turn = 0; !screen().includes(wanted); turn++) {
    if (turn > 600) throw new Error(`not seen: ${wanted}\n${screen()}`)
    await pause(100)
  }
  for (const key of keys) {
    running.write(key)
    await pause(40)
  }
  await pause(millis)
}
clearInterval(watch)
running.kill("SIGKILL")

const total = performance.now() - began + 3_000
const ids = new Map<string, number>()
const idOf = (line: string): number => {
  const known = ids.get(line)
  if (known !== undefined) return known
  ids.set(line, ids.size)
  return ids.size - 1
}

/** What a viewer without animations shows: the question, else the first frame. */
const still = Math.max(
  0,
  frames.findIndex(({ lines }) => lines.some((line) => line.includes("y yes")))
)
const percent = (at: number): string => ((100 * at) / total).toFixed(3)
const scenesOf = frames.map(({ at, lines }, index) => {
  const end = frames[index + 1]?.at ?? total
  const rows = lines
    .map((line, row) =>
      line === "" ? "" : `<use href="#l${idOf(line)}" y="${size.pad + (row + 1) * size.line - 4}"/>`
    )
    .join("")
  const keyframes = `@keyframes f${index}{0%{visibility:${index === 0 ? "visible" : "hidden"}}${percent(at)}%{visibility:visible}${percent(end)}%{visibility:hidden}100%{visibility:hidden}}`
  return {
    rule: `${keyframes}#f${index}{visibility:${index === still ? "visible" : "hidden"};animation:f${index} ${Math.round(total)}ms step-end infinite}`,
    group: `<g id="f${index}">${rows}</g>`
  }
})
const [width, height] = [size.columns * size.cell + 2 * size.pad, size.rows * size.line + 2 * size.pad]

writeFileSync(
  out,
  `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img" aria-label="The chat of deepagents: it plans, reads files, and asks before it writes">
<style>text{font:14px ui-monospace,Menlo,Consolas,monospace;fill:#d4d4d4;white-space:pre}${scenesOf.map(({ rule }) => rule).join("")}</style>
<rect width="100%" height="100%" rx="8" fill="#1e1e1e"/>
<defs>${[...ids].map(([line, id]) => `<text id="l${id}" x="${size.pad}" xml:space="preserve">${line}</text>`).join("\n")}</defs>
${scenesOf.map(({ group }) => group).join("\n")}
</svg>
`
)
console.log(`${out}: ${frames.length} frames`)
process.exit(0)
